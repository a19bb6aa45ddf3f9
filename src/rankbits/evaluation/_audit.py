"""An audit of codes: their exact scores beside what tools that break ties would print.

Every number is a mean over the same queries, those with a relevant item. The exact ones come from
the tie histogram; the others rank the database once for each order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rankbits import _check, metrics
from rankbits._mapped import reads_unchanged
from rankbits.affinity import Affinity
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.evaluation._audit_result import (
    NORMALISERS,
    ROWS,
    Audit,
    AuditedMetric,
    AuditRow,
    CutoffRow,
    TieSizes,
)
from rankbits.evaluation._orders import (
    Progress,
    RelevantRanks,
    Score,
    class_order,
    discount_table,
    document_id_order,
    gain_table,
    ideal_gain,
    score_orders,
)
from rankbits.histogram import TieHistogram, count_ties, own_items

PerQuery = dict[str, np.ndarray]
Orders = dict[str, np.ndarray | None]


@reads_unchanged
def audit(
    queries: BinaryCodes,
    database: BinaryCodes,
    affinity: Affinity,
    *,
    name: str = "codes",
    ks: Sequence[int] = (100, 1000),
    n_shuffles: int = 10,
    random_state: int = 0,
    gain: str = "exp",
    discount: str = "log2",
    exclude_self: bool | np.ndarray = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Score the codes exactly, and as tools would whose ranking must break ties.

    Parameters
    ----------
    queries, database : BinaryCodes of one length; the database in the order to be audited
    affinity : from `rankbits.affinity`; classes and tags also give the order by class
    name : of these codes, for the report
    ks : cutoffs of AP
    n_shuffles, random_state : how many seeded orders of the database, and their seed
    gain, discount : conventions of nDCG, as in `rankbits.metrics.ndcg`
    exclude_self, n_threads : as in `rankbits.count_ties`
    progress : called with (queries ranked, queries in all)

    >>> from rankbits.affinity import classes
    >>> codes = BinaryCodes.from_bits([[0, 0], [0, 1], [0, 1], [1, 1]])
    >>> result = audit(codes[:1], codes[1:], classes([7], [8, 7, 8]), ks=[1])
    >>> result.ap.worst, result.ap.expected, result.ap.best
    (0.5, 0.75, 1.0)
    """
    cutoffs = [_check.whole("ks", k, 1) for k in ks]
    _check.whole("n_shuffles", n_shuffles, 1, 10_000)
    _check.whole("random_state", random_state, 0)
    ties = count_ties(queries, database, affinity, exclude_self, n_threads=n_threads)
    is_scored = ties.positives.sum(axis=1) > 0
    if not is_scored.any():
        raise InputError(
            "affinity must have a relevant item for at least one query, got none for any query"
        )
    exact = _exact_scores(ties, gain, discount)
    orders = _orders(affinity, len(database), n_shuffles, random_state)
    own = own_items(exclude_self, len(queries), len(database))
    by_order = partial(score_orders, queries, database, affinity, own_items=own)
    cut = by_order({"index": orders["index"]}, _cut_scores(cutoffs))["index"]
    printed = _scores_by_order(partial(by_order, progress=progress), orders, ties, gain, discount)
    return Audit(
        name=name,
        n_bits=queries.n_bits,
        n_items=len(database),
        n_queries=int(is_scored.sum()),
        n_skipped=int((~is_scored).sum()),
        ap=_audited("AP", exact["AP"], printed, is_scored),
        ndcg=_audited("nDCG", exact["nDCG"], printed, is_scored),
        cutoffs=_cutoff_rows(cutoffs, ties, cut, is_scored),
        ties=_tie_sizes(ties, is_scored),
        conventions=_conventions(gain, discount, n_shuffles, random_state),
    )


def _exact_scores(ties: TieHistogram, gain: str, discount: str) -> dict[str, PerQuery]:
    """What follows from the histogram alone."""
    ap_bounds = metrics.average_precision_bounds(ties)
    ndcg_bounds = metrics.ndcg_bounds(ties, gain=gain, discount=discount)
    return {
        "AP": {
            "expected": metrics.average_precision(ties),
            **dict(zip(("worst", "best"), ap_bounds, strict=True)),
            "sklearn": metrics.sklearn_average_precision(ties),
        },
        "nDCG": {
            "expected": metrics.ndcg(ties, gain=gain, discount=discount),
            **dict(zip(("worst", "best"), ndcg_bounds, strict=True)),
        },
    }


def _orders(affinity: Affinity, n_items: int, n_shuffles: int, random_state: int) -> Orders:
    """Every order to rank by; None stands for numpy's default argsort."""
    rng = np.random.default_rng(random_state)
    by_class = class_order(affinity)
    return {
        "index": np.arange(n_items),
        "argsort": None,
        "trec": document_id_order(n_items),
        **({} if by_class is None else {"class": by_class}),
        **{f"shuffled {i}": rng.permutation(n_items) for i in range(n_shuffles)},
    }


def _scores_by_order(
    by_order: Callable[[Orders, dict[str, Score]], dict[str, PerQuery]],
    orders: Orders,
    ties: TieHistogram,
    gain: str,
    discount: str,
) -> dict[str, PerQuery]:
    """AP and nDCG of each query under each order."""
    gains = gain_table(ties.levels, gain)
    discounts = discount_table(int(ties.items.sum(axis=1).max()), discount)
    ideal = ideal_gain(ties.counts.sum(axis=1), gains, discounts)
    gained = partial(RelevantRanks.discounted_gain, gains=gains, discounts=discounts)
    scores = by_order(orders, {"AP": RelevantRanks.average_precision, "DCG": gained})
    divisor = np.where(ideal > 0, ideal, np.nan)
    return {
        order: {"AP": values["AP"], "nDCG": values["DCG"] / divisor}
        for order, values in scores.items()
    }


def _cut_scores(cutoffs: Sequence[int]) -> dict[str, Score]:
    return {
        f"{k} {normalise}": partial(RelevantRanks.average_precision, k=k, normalise=normalise)
        for k in cutoffs
        for normalise in NORMALISERS
    }


def _audited(
    name: str, exact: PerQuery, printed: Mapping[str, PerQuery], is_scored: np.ndarray
) -> AuditedMetric:
    """Rows in the order of ROWS, for what this metric and affinity have."""
    values = {order: scores[name] for order, scores in printed.items()}
    shuffled = [scores for order, scores in values.items() if order.startswith("shuffled ")]
    values |= {"shuffled": np.stack(shuffled), **exact}
    expected = exact["expected"][is_scored]
    rows = [_row(key, values[key][..., is_scored], expected) for key in ROWS if key in values]
    means = {key: float(exact[key][is_scored].mean()) for key in ("expected", "worst", "best")}
    return AuditedMetric(name=name, rows=tuple(rows), **means)


def _row(key: str, values: np.ndarray, expected: np.ndarray) -> AuditRow:
    """A row from values (queries,), or (shuffles, queries) that become mean and spread."""
    means = np.atleast_2d(values).mean(axis=1)
    title, who = ROWS[key]
    value, exact = float(means.mean()), float(expected.mean())
    row = AuditRow(
        key=key,
        title=title,
        who=who,
        value=value,
        points=100 * (value - exact),
        largest_points=100 * float(np.abs(values - expected).max()),
    )
    if values.ndim == 1:
        return row
    deviation = float(means.std(ddof=1)) if len(means) > 1 else 0.0
    return replace(row, deviation=deviation, low=float(means.min()), high=float(means.max()))


def _cutoff_rows(
    cutoffs: Sequence[int], ties: TieHistogram, cut: PerQuery, is_scored: np.ndarray
) -> tuple[CutoffRow, ...]:
    uncut = float(metrics.average_precision(ties)[is_scored].mean())
    rows = []
    for k in cutoffs:
        for normalise, who in NORMALISERS.items():
            exact = metrics.average_precision(ties, k=k, normalise=normalise)
            expected = float(exact[is_scored].mean())
            in_order = float(cut[f"{k} {normalise}"][is_scored].mean())
            points = 100 * (expected - uncut), 100 * (in_order - expected)
            rows.append(CutoffRow(k, normalise, who, expected, in_order, *points))
    return tuple(rows)


def _tie_sizes(ties: TieHistogram, is_scored: np.ndarray) -> TieSizes:
    """Items and relevant items at each distance, and how crowded a relevant item's distance is."""
    items, relevant = ties.items[is_scored], ties.positives[is_scored]
    tied_with = (relevant * items).sum(axis=1) / relevant.sum(axis=1)
    return TieSizes(
        items=tuple(items.mean(axis=0).tolist()),
        relevant=tuple(relevant.mean(axis=0).tolist()),
        tied_with=float(tied_with.mean()),
    )


def _conventions(gain: str, discount: str, n_shuffles: int, random_state: int) -> dict[str, str]:
    """What the numbers depend on, in words."""
    words = metrics.parse_metric(f"nDCG({gain},{discount})").conventions("skip")
    return {
        "AP": "exact expectation over the orders of tied items, divided by all relevant items",
        "nDCG": f"gain {words['gain']}; discount {words['discount']}; no cutoff",
        "queries": "those without a relevant item are left out of every mean",
        "shuffles": f"{n_shuffles} orders of the database, seed {random_state}",
        "points": "100 times the difference from the exact score",
        "numpy": f"default argsort of float32 distances by numpy {np.__version__} on this machine",
    }
