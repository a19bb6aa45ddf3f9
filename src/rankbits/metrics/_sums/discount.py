"""Sums of the rank discount over runs of ranks.

Notation:
    D(t)  discount at rank t       D^(x) = D(1) + ... + D(x)

    log2   D(t) = 1 / log2(t + 1)
    rsh    D(1) = 1, D(t) = 1 / log2(t) from rank 2: the other one, moved down by a rank

Ranks up to 2^20 read a table of prefix sums; beyond it a run is integrated, so that a database of
10^8 items needs no table of 10^8. Equation (D) of docs/math.md.
"""

import numpy as np

_LIMIT = 1 << 20
_SMALLEST = 1 << 12
_GRID = 2.0**-10  # a prefix sum is a multiple of this, exact, plus a small rest
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)  # to 1e-15 where the last rank <= 2 x first
_table = np.empty(0, np.complex128)


def discount_spans(edges: np.ndarray, discount: str) -> np.ndarray:
    """Sum of D(t) over edges[..., i] < t <= edges[..., i + 1]; 0 for an empty run.

    `edges` are int64 of shape (..., m + 1), ascending along the last axis; `discount` is "log2" or
    "rsh".

    >>> discount_spans(np.array([0, 1, 3]), "log2").round(6).tolist()
    [1.0, 1.13093]
    """
    shifted = edges + (discount == "log2")
    last = int(shifted.max(initial=0))
    table = _prefix_sums(min(last, _LIMIT) + 1)
    sums = np.diff(table.take(shifted if last < _LIMIT else np.minimum(shifted, _LIMIT)), axis=-1)
    spans: np.ndarray = sums.real + sums.imag
    if last > _LIMIT:
        far = np.maximum(shifted, _LIMIT).astype(np.float64)
        start, stop = far[..., :-1], far[..., 1:]
        beyond = stop > start
        spans[beyond] += _integrated(start[beyond], stop[beyond])
    return spans


def _prefix_sums(size: int) -> np.ndarray:
    """Entry i is D^(i - 1) of log2, and entry 0 is -1: so rsh reads i where log2 reads i + 1.

    The real part is a multiple of 2^-10 and the imaginary part the rest: differences of neighbors
    keep all their digits, which plain doubles near 10^5 would not.
    """
    global _table
    if len(_table) < size:
        length = _SMALLEST
        while length < size:
            length *= 2
        length = min(length, _LIMIT + 1)
        terms = np.empty(length, np.longdouble)
        terms[:2] = -1.0, 1.0
        terms[2:] = 1.0 / np.log2(np.arange(2, length))
        sums = terms.cumsum()
        coarse = np.round(sums / _GRID) * _GRID
        grown = np.empty(length, np.complex128)
        grown.real, grown.imag = coarse, sums - coarse
        _table = grown
    return _table


def _integrated(start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Sum of 1 / log2(t) over start < t <= stop, where start >= 2^20.

    The midpoint rule read backwards: the integral from start + 1/2 to stop + 1/2, by ten Gauss
    nodes for each doubling. At such ranks the rule's own error is below 1e-14 of the sum.
    """
    low, end = start + 0.5, stop + 0.5
    total = np.zeros(low.shape)
    while True:
        high = np.minimum(end, 2.0 * low)
        half, middle = 0.5 * (high - low), 0.5 * (high + low)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            total += weight * half / np.log2(middle + node * half)
        if (high >= end).all():
            return total
        low = high
