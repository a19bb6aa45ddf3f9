"""Mean of 1 / rank over the place of the first positive in a tie, at a cost its size hardly moves.

Notation:
    n, p  items and positives in the tie     N  items ranked before it
    j     place of the first positive        w(j) = C(n - j, p - 1) / C(n, p), its chance
    e     last place that counts, at most n - p + 1; from there on w(j) = 0

The first 2,048 terms are added one by one. What is left is smooth: blocks that double are
integrated with ten Gauss nodes each, so a tie of 10^9 items costs some thirty blocks. Equations
(RR) and (RR tail) of docs/math.md.
"""

import numpy as np

_HEAD = 2048
_CELLS = 1 << 18
_NEGLIGIBLE = np.exp(-45.0)  # of the chance that no positive came yet
_FEW = 16  # up to so many positives w is the polynomial itself, beyond it an integral
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def mean_reciprocal(n: np.ndarray, p: np.ndarray, N: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Sum over j <= m of w(j) / (N + j), for arrays of ties with p >= 2."""
    total = np.empty(len(n))
    e = np.minimum(n - p + 1.0, m)
    needed = np.clip(np.minimum(e, np.ceil(45.0 * n / p)), 1.0, _HEAD)
    order = np.argsort(needed)
    while order.size:  # longest first, so that the rows of a chunk are of like length
        n_head = int(needed[order[-1]])
        size = max(1, _CELLS // n_head)
        rows, order = order[-size:], order[:-size]
        total[rows] = _head_and_tail(n[rows], p[rows], N[rows], e[rows], n_head)
    return total


def _head_and_tail(
    n: np.ndarray, p: np.ndarray, N: np.ndarray, e: np.ndarray, n_head: int
) -> np.ndarray:
    """The first n_head terms; the rest is negligible, or n_head is the full 2,048."""
    j = np.arange(1.0, n_head + 2.0)
    left = np.maximum(n[:, None] - j[:-1], p[:, None] - 1.0)  # from the last place on w stays 0
    ratios = 1.0 - (p[:, None] - 1.0) / np.maximum(left, 1.0)
    weights = np.concatenate([np.ones((len(n), 1)), ratios], axis=1).cumprod(axis=1)
    weights *= np.where(j <= e[:, None], (p / n)[:, None], 0.0)
    terms = weights / (N[:, None] + j)
    total: np.ndarray = terms[:, :-1].sum(axis=1)
    is_open = weights[:, -1] * (n - n_head) > _NEGLIGIBLE * p
    if n_head == _HEAD and is_open.any():
        # the midpoint rule read backwards: the slope at either end, as a difference, over 24
        step = (terms[:, -1] - terms[:, -2]) / 24.0
        tail = _tail(n[is_open], p[is_open], N[is_open], e[is_open], weights[is_open, -2])
        total[is_open] += tail + step[is_open]
    return total


def _tail(
    n: np.ndarray, p: np.ndarray, N: np.ndarray, e: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Integral of w(x) / (N + x) from the head to e, where w(head) = weight."""
    low, end = np.full(len(n), _HEAD + 0.5), e + 0.5
    last = np.stack([e, np.minimum(e + 1.0, n - p + 1.0)], axis=1)
    slopes = _relative(n, p, last) / (N[:, None] + last)
    slopes[:, 1] *= e < n - p + 1.0  # after the last place w is 0
    total: np.ndarray = (slopes[:, 0] - slopes[:, 1]) / 24.0
    rows = np.arange(len(n))
    while rows.size:
        start = low[rows]
        high = np.minimum(2.0 * start, end[rows])
        half, middle = 0.5 * (high - start), 0.5 * (high + start)
        x = middle[:, None] + half[:, None] * _NODES
        relative = _relative(n[rows], p[rows], x)
        total[rows] += half * ((relative / (N[rows, None] + x)) @ _WEIGHTS)
        low[rows] = high
        chance = relative[:, -1] * weight[rows] * n[rows]
        rows = rows[(high < end[rows]) & (chance > _NEGLIGIBLE * p[rows])]
    total *= weight
    return total


def _relative(n: np.ndarray, p: np.ndarray, x: np.ndarray) -> np.ndarray:
    """w(x) / w(head) = product over l < p - 1 of (n - x - l) / (n - head - l), x (ties, points)."""
    relative = np.empty(x.shape)
    few = p <= _FEW
    relative[few] = _product(n[few] - _HEAD, p[few] - 1.0, x[few] - _HEAD)
    relative[~few] = np.exp(_log_product(n[~few] - _HEAD, p[~few] - 1.0, x[~few] - _HEAD))
    return relative


def _product(c: np.ndarray, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Product over l < q of 1 - u / (c - l), factor by factor."""
    product = np.ones(u.shape)
    for factor in range(int(q.max(initial=0.0))):
        below = np.where(factor < q, c - factor, np.inf)
        product *= 1.0 - u / below[:, None]
    return product


def _log_product(c: np.ndarray, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Logarithm of the same, with the sum over l turned into an integral from -1/2 to q - 1/2."""
    first, last = (c + 0.5)[:, None], (c - q + 0.5)[:, None]
    slopes = u / (first * (first - u)) - u / (last * np.maximum(last - u, 1.0))
    total: np.ndarray = -slopes / 24.0
    half, middle = 0.5 * q[:, None], 0.5 * (first + last)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * half * np.log1p(-u / np.maximum(middle + node * half, u + 0.5))
    return total
