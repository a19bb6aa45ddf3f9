"""Average precision, whole and cut off at a rank: in expectation over tie orders, and its bounds.

Notation:
    n, p  items and positives in a tie       N, P  the same, in all nearer ties
    m     places of a tie inside the cutoff  N+    all positives
    r     positives among those places
    rho = (p - 1) / (n - 1), the chance that another item is positive, given that one is
"""

import numpy as np

from rankbits import _check
from rankbits.histogram import TieHistogram
from rankbits.metrics._metric import Metric, Option
from rankbits.metrics._sums.harmonic import span, span_and_ramp
from rankbits.metrics._sums.hypergeometric import expectation
from rankbits.metrics._sums.ties import CutTie, Ties, blocks_of_ties, cut_tie, cutoff, divide

NORMALISERS = {
    "retrieved": "divided by the relevant items among the first k; 0 if there are none",
    "min": "divided by min(k, relevant items)",
    "total": "divided by all relevant items",
}


def average_precision(
    h: TieHistogram, k: int | None = None, normalise: str = "retrieved"
) -> np.ndarray:
    """Average precision of each query, in expectation over the orders of tied items.

    A tie adds (p / n) [(P + 1) span(N, m) + rho ramp(N, m)], with the sums over its m places within
    the first k ranks: span of 1 / (N + j), ramp of (j - 1) / (N + j). Then, divided by

        "retrieved"  the positives within the first k ranks, in each order (0 if there are none)
        "min"        min(N+, k)
        "total"      N+

    Without k, or with k >= the number of items, the three agree. A query costs O(b), whatever the
    database. NaN where nothing is relevant: how to count an empty query is the caller's choice.
    Equations (AP) and (APk) of docs/math.md; McSherry & Najork, ECIR 2008; He et al.,
    arXiv:1705.08562.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    k : int or None, default=None
        Cutoff: only the first k ranks count, with k at least 1. None takes the whole ranking.
    normalise : {"retrieved", "min", "total"}, default="retrieved"
        What the sum of precisions is divided by, as listed above. Without k it makes no difference.

    Returns
    -------
    values : ndarray of float64, shape (queries,)
        Average precision, from 0 to 1. NaN where nothing is relevant to the query.

    >>> h = TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1]))
    >>> average_precision(h)
    array([0.70833333])
    """
    k, normalise = cutoff(k), _check.choice("normalise", normalise, tuple(NORMALISERS))
    blocks = [_average_precision(ties, k, normalise) for ties in blocks_of_ties(h)]
    return np.concatenate([np.empty(0), *blocks])


def average_precision_bounds(
    h: TieHistogram, k: int | None = None, normalise: str = "retrieved"
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest average precision of each query over the orders of tied items.

    Positives last, or first, in each tie: r of them on end after N' other items add
    sum_{j=1..r} (P + j) / (N' + j) = (P + 1) span(N', r) + ramp(N', r).
    "retrieved" divides by the positives that make the cutoff, so their number in the tie that k
    splits is chosen too. NaN where nothing is relevant. Equation (AP bounds) of docs/math.md.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    k : int or None, default=None
        Cutoff: only the first k ranks count, with k at least 1. None takes the whole ranking.
    normalise : {"retrieved", "min", "total"}, default="retrieved"
        What the sum of precisions is divided by, as listed for `average_precision`.
        Without k it makes no difference.

    Returns
    -------
    worst : ndarray of float64, shape (queries,)
        The least value of each query.
    best : ndarray of float64, shape (queries,)
        The greatest value of each query.

    >>> h = TieHistogram(np.array([[[5, 5], [0, 0]]]), np.array([0, 1]))
    >>> [bound.round(4).tolist() for bound in average_precision_bounds(h)]
    [[0.3544], [1.0]]
    """
    k, normalise = cutoff(k), _check.choice("normalise", normalise, tuple(NORMALISERS))
    blocks = [_bounds(ties, k, normalise) for ties in blocks_of_ties(h)]
    worst, best = np.concatenate([np.empty((2, 0)), *blocks], axis=1)
    return worst, best


def _average_precision(ties: Ties, k: int | None, normalise: str) -> np.ndarray:
    if k is None or normalise != "retrieved":
        precisions = _sum_of_precisions(ties, ties.places(k))
        return divide(precisions, _divisor(ties, k, normalise), np.nan)
    places = ties.places(k)
    above = _sum_of_precisions(ties, np.where(places < ties.n, 0.0, places))
    values = _mean_over_retrieved(above, cut_tie(ties, k))
    values[ties.n_positives == 0] = np.nan
    return values


def _sum_of_precisions(ties: Ties, m: np.ndarray) -> np.ndarray:
    """Expected sum of precisions at the positives within m places of each tie; one a query."""
    several = (ties.p > 0.0) & (ties.n > 1.0)  # often half of the ties have no positive
    n, p, N, P = ties.n[several], ties.p[several], ties.N[several], ties.P[several]
    spans, ramps = span_and_ramp(N, m[several])
    added = p / n * ((P + 1.0) * spans + (p - 1.0) / (n - 1.0) * ramps)
    total = _sum_by_query(several, added)
    single = (ties.p == 1.0) & (ties.n == 1.0)  # as most are in a ranking by real numbers
    if single.any():
        added = m[single] * (ties.P[single] + 1.0) / (ties.N[single] + 1.0)
        total = total + _sum_by_query(single, added)
    return total


def _sum_by_query(mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums of the values that stand where the mask is set, in its order; one a query."""
    query = np.repeat(np.arange(len(mask)), np.count_nonzero(mask, axis=1))
    return np.bincount(query, weights=values, minlength=len(mask))


def _divisor(ties: Ties, k: int | None, normalise: str) -> np.ndarray:
    """What the sum of precisions is divided by where that does not depend on the order."""
    if k is None or normalise == "total":
        return ties.n_positives
    least: np.ndarray = np.minimum(ties.n_positives, k)
    return least


def _mean_over_retrieved(above: np.ndarray, cut: CutTie) -> np.ndarray:
    """Mean of (above + cut tie) / (P + r) over the number r of positives that make the cutoff."""
    values = divide(above, cut.P, 0.0)
    rows = np.flatnonzero((cut.m > 0) & (cut.p > 0))
    if not rows.size:
        return values
    above, cut = above[rows], cut[rows]
    spans, ramps = span_and_ramp(cut.N, cut.m)
    flat, steep = (cut.P + 1.0) * spans / cut.m, ramps / (cut.m * np.maximum(cut.m - 1.0, 1.0))

    def value(row: np.ndarray, r: np.ndarray) -> np.ndarray:
        precisions = above[row] + r * (flat[row] + (r - 1.0) * steep[row])
        mean: np.ndarray = precisions / np.maximum(cut.P[row] + r, 1.0)
        return mean

    values[rows] = expectation(cut, value)
    return values


def _bounds(ties: Ties, k: int | None, normalise: str) -> tuple[np.ndarray, np.ndarray]:
    if k is not None and normalise == "retrieved":
        return _retrieved_bounds(ties, k)
    worst, best = _precision_bounds(ties, ties.places(k))
    divisor = _divisor(ties, k, normalise)
    return divide(worst, divisor, np.nan), divide(best, divisor, np.nan)


def _precision_bounds(ties: Ties, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum of precisions within m places of each tie, positives last and positives first."""
    fewest, most = np.maximum(m - (ties.n - ties.p), 0.0), np.minimum(m, ties.p)
    worst = _sum_of_run(ties.N + m - fewest, ties.P, fewest).sum(axis=1)
    return worst, _sum_of_run(ties.N, ties.P, most).sum(axis=1)


def _sum_of_run(before: np.ndarray, P: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Sum of precisions over r positives in a row: sum_{j=1..r} (P + j) / (before + j)."""
    spans, ramps = span_and_ramp(before, r)
    total: np.ndarray = (P + 1.0) * spans + ramps
    return total


def _retrieved_bounds(ties: Ties, k: int) -> tuple[np.ndarray, np.ndarray]:
    places = ties.places(k)
    worst, best = _precision_bounds(ties, np.where(places < ties.n, 0.0, places))
    cut = cut_tie(ties, k)
    low = _mean_with(worst, cut, _worst_count(worst, cut), first=False)
    ends = [_mean_with(best, cut, r, first=True) for r in (cut.fewest(), cut.most())]
    high = np.maximum(*ends)
    low[ties.n_positives == 0] = high[ties.n_positives == 0] = np.nan
    return low, high


def _mean_with(above: np.ndarray, cut: CutTie, r: np.ndarray, first: bool) -> np.ndarray:
    """Average precision if r positives of the cut tie come first, or last, in its m places."""
    before = cut.N if first else cut.N + cut.m - r
    return divide(above + _sum_of_run(before, cut.P, r), cut.P + r, 0.0)


def _worst_count(above: np.ndarray, cut: CutTie) -> np.ndarray:
    """The r whose positives, last in the cut tie, give the least mean of precisions.

    The sum W(r) of their precisions is convex, so the mean (above + W(r)) / (P + r) falls and then
    rises, and bisection finds the first r at which one positive more would not lower it.
    """
    low, high = cut.fewest(), cut.most()
    while (low < high).any():
        r = np.floor(0.5 * (low + high))
        start = cut.N + cut.m - r
        more = (cut.P + 1.0) / np.maximum(start, 1.0) + span(start, r)  # W(r + 1) - W(r)
        rises = more * (cut.P + r) >= above + _sum_of_run(start, cut.P, r)
        active = low < high
        high = np.where(active & rises, r, high)
        low = np.where(active & ~rises, r + 1.0, low)
    return low


METRIC = Metric(
    name="AP",
    summary="mean of the precisions at the ranks of the relevant items",
    function=average_precision,
    bounds=average_precision_bounds,
    cutoffs=("none", "rank"),
    options=(Option("normalise", NORMALISERS),),
    words={"none": {"normalise": NORMALISERS["total"]}},
    aliases=("map", "averageprecision", "meanaverageprecision"),
)
