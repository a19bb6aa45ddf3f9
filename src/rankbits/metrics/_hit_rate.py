"""Hit rate: is there a relevant item within the first k ranks?

Notation:
    n, p  items and positives in a tie       m  places of a tie inside the cutoff
"""

import numpy as np

from rankbits import _check
from rankbits.histogram import TieHistogram
from rankbits.metrics._metric import Metric
from rankbits.metrics._sums.ties import cut_tie, ties_of

_STEPS = 256
_CERTAIN = 45.0  # exp(-45) of the chance left changes no double


def hit_rate(h: TieHistogram, k: int) -> np.ndarray:
    """Chance that at least one positive is within the first k ranks; 0 where there are none.

    1 if a nearer tie holds a positive, else 1 - C(n - p, m) / C(n, m) at the tie that k splits.
    Equation (hit) of docs/math.md.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    k : int
        Number of ranks in which a positive counts as a hit, at least 1.

    Returns
    -------
    values : ndarray of float64, shape (queries,)
        A probability for each query.

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


METRIC = Metric(
    name="Hit",
    summary="chance that at least one relevant item is retrieved",
    function=hit_rate,
    cutoffs=("rank",),
    value_if_empty=0.0,
    aliases=("hits", "hitrate", "hr", "success"),
)
