"""The range of average precision that tie-breaking could report.

Notation:
    n, p  items and positives in a tie       N, P  the same, in all nearer ties
    m     places of a tie inside the cutoff  r     positives among those places
"""

import numpy as np

from rankbits import _check
from rankbits.histogram import TieHistogram
from rankbits.metrics._average_precision import NORMALISERS, normaliser
from rankbits.metrics._harmonic import span, span_and_ramp
from rankbits.metrics._ties import CutTie, Ties, blocks_of_ties, cut_tie, cutoff, divide


def average_precision_bounds(
    h: TieHistogram, k: int | None = None, normalise: str = "retrieved"
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest average precision of each query over the orders of tied items.

    Positives last, or first, in each tie: r of them on end after N' other items add
    sum_{j=1..r} (P + j) / (N' + j) = (P + 1) span(N', r) + ramp(N', r).
    "retrieved" divides by the positives that make the cutoff, so their number in the tie that k
    splits is chosen too. NaN where nothing is relevant. Equation (AP bounds) of docs/math.md.

    >>> h = TieHistogram(np.array([[[5, 5], [0, 0]]]), np.array([0, 1]))
    >>> [bound.round(4).tolist() for bound in average_precision_bounds(h)]
    [[0.3544], [1.0]]
    """
    k, normalise = cutoff(k), _check.choice("normalise", normalise, NORMALISERS)
    parts = [_bounds(ties, k, normalise) for ties in blocks_of_ties(h)]
    worst, best = np.concatenate([np.empty((2, 0)), *parts], axis=1)
    return worst, best


def _bounds(ties: Ties, k: int | None, normalise: str) -> tuple[np.ndarray, np.ndarray]:
    if k is not None and normalise == "retrieved":
        return _retrieved_bounds(ties, k)
    worst, best = _precisions(ties, ties.places(k))
    divisor = normaliser(ties, k, normalise)
    return divide(worst, divisor, np.nan), divide(best, divisor, np.nan)


def _precisions(ties: Ties, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum of precisions within m places of each tie, positives last and positives first."""
    fewest, most = np.maximum(m - (ties.n - ties.p), 0.0), np.minimum(m, ties.p)
    worst = _run(ties.N + m - fewest, ties.P, fewest).sum(axis=1)
    return worst, _run(ties.N, ties.P, most).sum(axis=1)


def _run(before: np.ndarray, P: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Sum of precisions over r positives in a row: sum_{j=1..r} (P + j) / (before + j)."""
    spans, ramps = span_and_ramp(before, r)
    total: np.ndarray = (P + 1.0) * spans + ramps
    return total


def _retrieved_bounds(ties: Ties, k: int) -> tuple[np.ndarray, np.ndarray]:
    places = ties.places(k)
    worst, best = _precisions(ties, np.where(places < ties.n, 0.0, places))
    cut = cut_tie(ties, k)
    low = _mean_with(worst, cut, _worst_count(worst, cut), first=False)
    ends = [_mean_with(best, cut, r, first=True) for r in (cut.fewest(), cut.most())]
    high = np.maximum(*ends)
    low[ties.n_positives == 0] = high[ties.n_positives == 0] = np.nan
    return low, high


def _mean_with(above: np.ndarray, cut: CutTie, r: np.ndarray, first: bool) -> np.ndarray:
    """Average precision if r positives of the cut tie come first, or last, in its m places."""
    before = cut.N if first else cut.N + cut.m - r
    return divide(above + _run(before, cut.P, r), cut.P + r, 0.0)


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
        rises = more * (cut.P + r) >= above + _run(start, cut.P, r)
        active = low < high
        high = np.where(active & rises, r, high)
        low = np.where(active & ~rises, r + 1.0, low)
    return low
