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
    """One way to treat ties and the score it prints."""

    key: str
    title: str
    who: str
    value: float
    points: float  # 100 * (value - expected)
    largest_points: float  # the same for the one query that differs most, without its sign
    deviation: float | None = None  # of shuffles: standard deviation, least and greatest
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class AuditedMetric:
    """A metric in expectation over tie orders, and every other way to report it."""

    name: str
    expected: float
    worst: float
    best: float
    rows: tuple[AuditRow, ...]


@dataclass(frozen=True)
class CutoffRow:
    """AP at a cutoff under one normaliser, in expectation and in index order."""

    k: int
    normalise: str
    who: str
    expected: float
    index_order: float
    points: float  # 100 * (expected - AP)
    order_points: float  # 100 * (index_order - expected)


@dataclass(frozen=True)
class TieSizes:
    """How crowded the distances are, as means over queries; entry d is distance d, 0..b."""

    items: tuple[float, ...]
    relevant: tuple[float, ...]
    tied_with: float  # items at the distance of a relevant item, itself included


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
