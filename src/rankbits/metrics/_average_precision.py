"""Average precision in expectation over tie orders, whole and cut off at a rank.

Notation:
    n, p  items and positives in a tie       N, P  the same, in all nearer ties
    m     places of a tie inside the cutoff  N+    all positives
    rho = (p - 1) / (n - 1), the chance that another item is positive, given that one is
"""

import numpy as np

from rankbits import _check
from rankbits.histogram import TieHistogram
from rankbits.metrics._harmonic import span_and_ramp
from rankbits.metrics._hypergeometric import expectation
from rankbits.metrics._ties import CutTie, Ties, blocks_of_ties, cut_tie, cutoff, divide

NORMALISERS = ("retrieved", "min", "total")


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

    >>> h = TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1]))
    >>> average_precision(h)
    array([0.70833333])
    """
    k, normalise = cutoff(k), _check.choice("normalise", normalise, NORMALISERS)
    parts = [_average_precision(ties, k, normalise) for ties in blocks_of_ties(h)]
    return np.concatenate([np.empty(0), *parts])


def _average_precision(ties: Ties, k: int | None, normalise: str) -> np.ndarray:
    if k is None or normalise != "retrieved":
        precisions = sum_of_precisions(ties, ties.places(k))
        return divide(precisions, normaliser(ties, k, normalise), np.nan)
    places = ties.places(k)
    above = sum_of_precisions(ties, np.where(places < ties.n, 0.0, places))
    found = _retrieved(above, cut_tie(ties, k))
    found[ties.n_positives == 0] = np.nan
    return found


def sum_of_precisions(ties: Ties, m: np.ndarray) -> np.ndarray:
    """Expected sum of precisions at the positives within m places of each tie; one a query."""
    adds = ties.p > 0  # often half of the ties have no positive
    n, p, N, P = ties.n[adds], ties.p[adds], ties.N[adds], ties.P[adds]
    spans, ramps = span_and_ramp(N, m[adds])
    added = p / n * ((P + 1.0) * spans + (p - 1.0) / np.maximum(n - 1.0, 1.0) * ramps)
    query = np.repeat(np.arange(len(adds)), np.count_nonzero(adds, axis=1))
    return np.bincount(query, weights=added, minlength=len(adds))


def normaliser(ties: Ties, k: int | None, normalise: str) -> np.ndarray:
    """What the sum of precisions is divided by where that does not depend on the order."""
    if k is None or normalise == "total":
        return ties.n_positives
    least: np.ndarray = np.minimum(ties.n_positives, k)
    return least


def _retrieved(above: np.ndarray, cut: CutTie) -> np.ndarray:
    """Mean of (above + cut tie) / (P + r) over the number r of positives that make the cutoff."""
    found = divide(above, cut.P, 0.0)
    rows = np.flatnonzero((cut.m > 0) & (cut.p > 0))
    if not rows.size:
        return found
    above, cut = above[rows], cut[rows]
    spans, ramps = span_and_ramp(cut.N, cut.m)
    flat, steep = (cut.P + 1.0) * spans / cut.m, ramps / (cut.m * np.maximum(cut.m - 1.0, 1.0))

    def value(row: np.ndarray, r: np.ndarray) -> np.ndarray:
        precisions = above[row] + r * (flat[row] + (r - 1.0) * steep[row])
        mean: np.ndarray = precisions / np.maximum(cut.P[row] + r, 1.0)
        return mean

    found[rows] = expectation(cut, value)
    return found
