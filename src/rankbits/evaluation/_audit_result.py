"""What an audit says: scores as others would print them, who they are, and by how much they differ.

Differences are in points: 100 times the difference of two scores.
"""

from dataclasses import asdict, dataclass

NORMALISERS = {
    "retrieved": "most deep hashing code, as mAP@k",
    "min": "recommender code and competitions, as MAP@k",
    "total": "trec_eval, as map_cut_k",
}
ROWS = {  # key: what it is, who does so; the order of the table
    "worst": ("Every tie in its worst order", "nobody on purpose: the least any tool could print"),
    "class": ("Database sorted by class", "stable sort of a data set stored folder by folder"),
    "index": ("Index order", "np.argsort(kind='stable'), torch.sort(stable=True), search by id"),
    "argsort": ("numpy's default argsort", "most published hashing code: np.argsort(distance)"),
    "trec": ("trec_eval's order", "trec_eval and its wrappers: by document id, here row numbers"),
    "sklearn": ("scikit-learn's definition", "average_precision_score: a tie is one step"),
    "shuffled": ("Database shuffled", "loaders that shuffle: mean and deviation over the seeds"),
    "best": ("Every tie in its best order", "nobody on purpose: the most any tool could print"),
}


@dataclass(frozen=True)
class AuditRow:
    """One way to treat ties and the score it prints.

    Parameters
    ----------
    key : str
        Short name of the way, such as "index" or "sklearn".
    title : str
        What it does with ties, in a few words.
    who : str
        Which tools do so.
    value : float
        The score it prints, a mean over the scored queries.
    points : float
        100 times the difference of `value` from the expected score.
    largest_points : float
        The same for the one query that differs most, without its sign.
    deviation : float or None, default=None
        Standard deviation of the score over the shuffles; None for a way that does not shuffle.
    low, high : float or None, default=None
        Least and greatest score of the shuffles.
    """

    key: str
    title: str
    who: str
    value: float
    points: float
    largest_points: float
    deviation: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class AuditedMetric:
    """A metric in expectation over tie orders, and every other way to report it.

    Parameters
    ----------
    name : str
        Name of the metric.
    expected : float
        Its exact score: the expectation over all orders of tied items.
    worst, best : float
        The least and the greatest score that an order of tied items can give.
    rows : tuple of AuditRow
        The score that each way to treat ties prints.
    """

    name: str
    expected: float
    worst: float
    best: float
    rows: tuple[AuditRow, ...]


@dataclass(frozen=True)
class CutoffRow:
    """AP at a cutoff under one normalizer, in expectation and in index order.

    Parameters
    ----------
    k : int
        The cutoff.
    normalise : str
        What AP is divided by: "retrieved", "min" or "total".
    who : str
        Which tools divide by it.
    expected : float
        The expectation over all orders of tied items.
    index_order : float
        The score where tied items come in the order of the database.
    points : float
        100 times the difference of `expected` from AP without a cutoff.
    order_points : float
        100 times the difference of `index_order` from `expected`.
    """

    k: int
    normalise: str
    who: str
    expected: float
    index_order: float
    points: float
    order_points: float


@dataclass(frozen=True)
class TieSizes:
    """How crowded the distances are, as means over the scored queries.

    Parameters
    ----------
    items : tuple of float
        Number of items at each Hamming distance, from 0 to the code length.
    relevant : tuple of float
        Number of relevant items at each distance.
    tied_with : float
        Number of items at the distance of a relevant item, which is counted too.
    """

    items: tuple[float, ...]
    relevant: tuple[float, ...]
    tied_with: float


@dataclass(frozen=True)
class Audit:
    """What `audit` found; `to_dict()` is ready for JSON.

    Parameters
    ----------
    name : str
        Name of the codes, as given to `audit`.
    n_bits : int
        Code length.
    n_items : int
        Number of items in the database.
    n_queries : int
        Number of scored queries, those with a relevant item.
    n_skipped : int
        Number of queries without a relevant item, which are left out of every mean.
    ap : AuditedMetric
        Average precision without a cutoff. Its `expected`, `worst` and `best` are means over the
        scored queries, and its `rows` have the value that each way to treat ties prints.
    ndcg : AuditedMetric
        The same for nDCG without a cutoff.
    cutoffs : tuple of CutoffRow
        Average precision at each cutoff k, one row for each of the normalizers "retrieved", "min"
        and "total": in expectation and in index order.
    ties : TieSizes
        How many items, and how many relevant items, lie at each Hamming distance, as means over
        the scored queries.
    conventions : dict from str to str
        The choices behind the numbers, such as the gain of nDCG and the seed, in words.
    """

    name: str
    n_bits: int
    n_items: int
    n_queries: int  # scored; those without a relevant item are in n_skipped
    n_skipped: int
    ap: AuditedMetric
    ndcg: AuditedMetric
    cutoffs: tuple[CutoffRow, ...]
    ties: TieSizes
    conventions: dict[str, str]

    @property
    def ranges(self) -> list[dict[str, object]]:
        """One entry a metric for range plots: worst, expected, best, and what orders print."""
        return [
            {
                "name": self.name,
                "metric": metric.name,
                "worst": metric.worst,
                "expected": metric.expected,
                "best": metric.best,
                "printed": {row.key: row.value for row in metric.rows},
            }
            for metric in (self.ap, self.ndcg)
        ]

    def to_dict(self) -> dict[str, object]:
        """Plain lists, dicts and numbers."""
        return {**asdict(self), "ranges": self.ranges}
