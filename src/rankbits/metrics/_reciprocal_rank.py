"""Reciprocal rank: how far down the first relevant item is.

Notation:
    n, p  items and positives in the nearest tie with a positive     N  items in all nearer ties
    m     places of that tie inside the cutoff, n without one
    j     place of the first positive in its tie, from 1
"""

import numpy as np

from rankbits.histogram import TieHistogram
from rankbits.metrics._metric import Metric
from rankbits.metrics._sums.first_place import mean_reciprocal
from rankbits.metrics._sums.harmonic import span_and_ramp
from rankbits.metrics._sums.ties import Ties, cutoff, ties_of


def reciprocal_rank(h: TieHistogram, k: int | None = None) -> np.ndarray:
    """Expected 1 / rank of the first positive, or 0 if that is beyond rank k; NaN if there is none.

    In the first tie with p > 0, sum over j <= m of C(n - j, p - 1) / C(n, p) / (N + j).
    Equation (RR) of docs/math.md.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    k : int or None, default=None
        Cutoff, a rank from 1: a query whose first positive is beyond it scores 0. With None there
        is no cutoff.

    Returns
    -------
    values : ndarray of float64, shape (queries,)
        Reciprocal rank of each query, from 0 to 1. NaN where nothing is relevant to the query.

    >>> h = TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1]))
    >>> reciprocal_rank(h).tolist(), reciprocal_rank(h, k=1).tolist()
    ([0.75], [0.5])
    """
    k, ties = cutoff(k), ties_of(h)
    n, p, N = _first_positive_tie(ties)
    m = n if k is None else np.clip(k - N, 0.0, n)
    values = np.full(len(n), np.nan)
    spans, ramps = span_and_ramp(N, m)
    one, two, more = p == 1, p == 2, p > 2
    values[one] = (spans / n)[one]
    values[two] = 2.0 * ((spans - ramps / np.maximum(n - 1.0, 1.0)) / n)[two]
    values[more] = mean_reciprocal(n[more], p[more], N[more], m[more])
    return values


def _first_positive_tie(ties: Ties) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n, p and N of the nearest tie with a positive; p = 0 and n = 1 where there is none."""
    at = (np.arange(len(ties.n)), (ties.p > 0).argmax(axis=1))
    return np.maximum(ties.n[at], 1.0), ties.p[at], ties.N[at]


METRIC = Metric(
    name="RR",
    summary="reciprocal of the rank of the first relevant item",
    function=reciprocal_rank,
    cutoffs=("none", "rank"),
    words={"rank": {"beyond": "0 where the first relevant item is beyond rank k"}},
    aliases=("mrr", "reciprocalrank", "meanreciprocalrank"),
)
