"""Normalised discounted cumulative gain in expectation over tie orders, and its bounds.

Notation:
    n     items in a tie        n_v  those of affinity level v     N  items in all nearer ties
    G(v)  gain of a level       D^   prefix sums of the discount   k  cutoff, infinite without one

    gain      exp     G(v) = 2^v - 1              linear  G(v) = v
    discount  log2    D(t) = 1 / log2(t + 1)      rsh     D(1) = 1, then D(t) = 1 / log2(t)
"""

import math

import numpy as np

from rankbits import _check
from rankbits.errors import InputError
from rankbits.histogram import TieHistogram
from rankbits.metrics._metric import Metric, Option
from rankbits.metrics._sums.discount import discount_spans
from rankbits.metrics._sums.ties import cutoff, divide, histogram, row_blocks, sum_levels

GAINS = {"exp": "2^v - 1", "linear": "v"}
DISCOUNTS = {"log2": "1 / log2(rank + 1)", "rsh": "1 at rank 1, 1 / log2(rank) from rank 2"}
_MAX_EXPONENT = 1023  # of a double


def ndcg(
    h: TieHistogram, k: int | None = None, gain: str = "exp", discount: str = "log2"
) -> np.ndarray:
    """NDCG of each query, in expectation over the orders of tied items.

    A tie adds sum_v G(v) n_v / n * (D^(min(N + n, k)) - D^(min(N, k))); the sum is divided by its
    value with the highest levels first. NaN where that ideal is 0: nothing is relevant.
    Equation (DCG) of docs/math.md; McSherry & Najork, ECIR 2008; He et al., arXiv:1705.08562.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    k : int or None, default=None
        Cutoff: only the first k ranks count, in the ideal order too, with k at least 1. None takes
        the whole ranking.
    gain : {"exp", "linear"}, default="exp"
        Gain of an item of affinity level v: 2^v - 1 for "exp", v for "linear".
    discount : {"log2", "rsh"}, default="log2"
        Weight of the gain at a rank: 1 / log2(rank + 1) for "log2"; for "rsh", 1 at rank 1 and
        1 / log2(rank) from rank 2.

    Returns
    -------
    values : ndarray of float64, shape (queries,)
        NDCG, from 0 to 1. NaN where nothing is relevant to the query.

    >>> h = TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1]))
    >>> ndcg(h).round(6).tolist()
    [0.806574]
    """
    h, gains, totals = _checked(h, gain, discount)
    k, dcg = cutoff(k), np.empty(h.n_queries)
    for rows in row_blocks(h):
        counts = h.counts[rows]
        n = sum_levels(counts)
        means = counts @ gains / np.maximum(n, 1)
        dcg[rows] = np.einsum("qd,qd->q", means, discount_spans(_edges(n, k), discount))
    return divide(dcg, _ideal(totals, gains, k, discount), np.nan)


def ndcg_bounds(
    h: TieHistogram, k: int | None = None, gain: str = "exp", discount: str = "log2"
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest NDCG of each query over the orders of tied items.

    Each tie sorted by level, lowest first or highest first; a run of one level then adds G(v) times
    the discounts of its ranks. NaN where nothing is relevant. Equation (DCG bounds) of
    docs/math.md.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    k : int or None, default=None
        Cutoff: only the first k ranks count, in the ideal order too, with k at least 1. None takes
        the whole ranking.
    gain : {"exp", "linear"}, default="exp"
        Gain of an item of affinity level v: 2^v - 1 for "exp", v for "linear".
    discount : {"log2", "rsh"}, default="log2"
        Weight of the gain at a rank: 1 / log2(rank + 1) for "log2"; for "rsh", 1 at rank 1 and
        1 / log2(rank) from rank 2.

    Returns
    -------
    worst : ndarray of float64, shape (queries,)
        The least value of each query.
    best : ndarray of float64, shape (queries,)
        The greatest value of each query.

    >>> h = TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1]))
    >>> [bound.round(6).tolist() for bound in ndcg_bounds(h)]
    [[0.693426], [0.919721]]
    """
    h, gains, totals = _checked(h, gain, discount)
    k = cutoff(k)
    ideal = _ideal(totals, gains, k, discount)
    bounds = []
    for order in (slice(None), slice(None, None, -1)):
        runs = h.counts[:, :, order].reshape(h.n_queries, math.prod(h.counts.shape[1:]))
        spans = discount_spans(_edges(runs, k), discount).reshape(h.counts.shape)
        bounds.append(divide((spans @ gains[order]).sum(axis=1), ideal, np.nan))
    return bounds[0], bounds[1]


def _checked(
    h: TieHistogram, gain: str, discount: str
) -> tuple[TieHistogram, np.ndarray, np.ndarray]:
    """The histogram, the gain of each level and the items of each level (queries, V)."""
    h = histogram(h)
    _check.choice("discount", discount, tuple(DISCOUNTS))
    gains = _gains(h.levels, _check.choice("gain", gain, tuple(GAINS)))
    totals = h.counts.sum(axis=1)
    with np.errstate(over="ignore"):
        is_safe = np.isfinite(totals @ gains).all()
    if not is_safe:
        raise InputError(
            f"levels up to {h.levels[-1]} are too large for these counts: their gains 2^v - 1 add "
            'up beyond a double; use gain="linear"'
        )
    return h, gains, totals


def _gains(levels: np.ndarray, gain: str) -> np.ndarray:
    """Gain of each level, as a double; it is exact below 2^53."""
    if gain == "linear":
        return levels.astype(np.float64)
    if levels[-1] > _MAX_EXPONENT:
        raise InputError(
            f"levels must be at most {_MAX_EXPONENT} for the gain 2^v - 1, got {levels[-1]}; "
            'use gain="linear"'
        )
    gains: np.ndarray = np.ldexp(1.0, levels) - 1.0
    return gains


def _edges(sizes: np.ndarray, k: int | None) -> np.ndarray:
    """Ranks where each run ends, from 0, none beyond k."""
    edges = np.zeros((sizes.shape[0], sizes.shape[1] + 1), np.int64)
    np.cumsum(sizes, axis=1, out=edges[:, 1:])
    return edges if k is None else np.minimum(edges, k, out=edges)


def _ideal(totals: np.ndarray, gains: np.ndarray, k: int | None, discount: str) -> np.ndarray:
    """DCG with the highest levels first."""
    ideal: np.ndarray = discount_spans(_edges(totals[:, ::-1], k), discount) @ gains[::-1]
    return ideal


METRIC = Metric(
    name="nDCG",
    summary="discounted sum of the gains of the levels, divided by that of the ideal order",
    function=ndcg,
    bounds=ndcg_bounds,
    cutoffs=("none", "rank"),
    options=(
        Option("gain", GAINS),
        Option("discount", DISCOUNTS, implies={"rsh": {"gain": "linear"}}),  # as in the RSH paper
    ),
    aliases=("dcg", "mndcg"),
)
