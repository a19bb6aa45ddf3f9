"""Metrics of the first positive: is there one within k ranks, and at which rank.

Notation:
    n, p  items and positives in a tie       N  items in all nearer ties
    m     places of a tie inside the cutoff  j  place of the first positive in its tie, from 1
"""

import numpy as np

from rankbits import _check
from rankbits.histogram import TieHistogram
from rankbits.metrics._first_place import mean_reciprocal
from rankbits.metrics._harmonic import span_and_ramp
from rankbits.metrics._ties import Ties, cut_tie, ties_of

_STEPS = 256
_CERTAIN = 45.0  # exp(-45) of the chance left changes no double


def hit_rate(h: TieHistogram, k: int) -> np.ndarray:
    """Chance that at least one positive is within the first k ranks; 0 where there are none.

    1 if a nearer tie holds a positive, else 1 - C(n - p, m) / C(n, m) at the tie that k splits.
    Equation (hit) of docs/math.md.

    >>> hit_rate(TieHistogram(np.array([[[2, 2], [0, 1]]]), np.array([0, 1])), k=2)
    array([0.83333333])
    """
    cut = cut_tie(ties_of(h), _check.whole("k", k, 1))
    rate = np.where(cut.P > 0, 1.0, 0.0)
    rows = np.flatnonzero((cut.P == 0) & (cut.p > 0) & (cut.m > 0))
    certain = cut.m > cut.n - cut.p
    rate[rows[certain[rows]]] = 1.0
    rows = rows[~certain[rows]]
    rate[rows] = -np.expm1(_log_miss(cut.n[rows], cut.p[rows], cut.m[rows]))
    return rate


def _log_miss(n: np.ndarray, p: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Logarithm of C(n - p, m) / C(n, m), the chance that m of n items hold none of p positives.

    It is the sum over i < few of log(1 - many / (n - i)), with few <= many the sorted m and p. At
    worst some sqrt(45 n) terms: then the sum is below -45 and no double sees the rest.
    """
    few, many = np.minimum(m, p), np.maximum(m, p)
    total = np.zeros(len(n))
    rows, done = np.arange(len(n)), 0
    while rows.size:
        i = done + np.arange(float(_STEPS))
        inside = i < few[rows, None]
        ratio = np.where(inside, many[rows, None], 0.0) / np.maximum(n[rows, None] - i, 1.0)
        total[rows] += np.log1p(-ratio).sum(axis=1)
        done += _STEPS
        rows = rows[(few[rows] > done) & (total[rows] > -_CERTAIN)]
    return total


def reciprocal_rank(h: TieHistogram) -> np.ndarray:
    """Expected 1 / rank of the first positive; NaN where there is none.

    In the first tie with p > 0, sum over j of C(n - j, p - 1) / C(n, p) / (N + j).
    Equation (RR) of docs/math.md.

    >>> reciprocal_rank(TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1]))).tolist()
    [0.75]
    """
    ties = ties_of(h)
    n, p, N = _first_positive_tie(ties)
    found = np.full(len(n), np.nan)
    spans, ramps = span_and_ramp(N, n)
    one, two, more = p == 1, p == 2, p > 2
    found[one] = (spans / n)[one]
    found[two] = 2.0 * ((spans - ramps / np.maximum(n - 1.0, 1.0)) / n)[two]
    found[more] = mean_reciprocal(n[more], p[more], N[more])
    return found


def _first_positive_tie(ties: Ties) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n, p and N of the nearest tie with a positive; p = 0 and n = 1 where there is none."""
    at = (np.arange(len(ties.n)), (ties.p > 0).argmax(axis=1))
    return np.maximum(ties.n[at], 1.0), ties.p[at], ties.N[at]
