"""Sums of 1/rank over a run of ranks, without the cancellation of harmonic numbers.

Notation:
    N  items ranked before the run     n  places in the run     H(x) = 1 + 1/2 + ... + 1/x

    span(N, n) = sum_{j=1..n} 1 / (N + j)          = H(N + n) - H(N)
    ramp(N, n) = sum_{j=1..n} (j - 1) / (N + j)    = n - (N + 1) span(N, n)

Both right-hand sides lose every digit when n << N; equations (span) and (ramp) of docs/math.md do
not: their relative error stays below 1e-12 at any N.
"""

import numpy as np

_EXACT = 32  # below this rank a table; from it on four terms of f leave no more than rounding
_TABLE = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, _EXACT + 1))])
_SHORT = 0.1  # below it the series for x - log(1 + x), above it the difference itself


def span(N: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Sum of 1 / (N + j) over j = 1..n; 0 where n = 0. Equation (span) of docs/math.md."""
    return span_and_ramp(N, n)[0]


def span_and_ramp(N: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of 1 / (N + j) and of (j - 1) / (N + j) over j = 1..n; 0 where n = 0.

    From rank 32 on, with x = n / (N + 1/2) and f the tail of the expansion of H about N + 1/2,

        span = log(1 + x) + f(N + n) - f(N)
        ramp = (N + 1/2) (x - log(1 + x)) - (N + 1/2) (f(N + n) - f(N)) - span / 2

    >>> [float(s[0]) for s in span_and_ramp(np.array([1.0]), np.array([2.0]))]
    [0.8333333333333333, 0.3333333333333335]
    """
    end = N + n
    low, high = np.maximum(N, _EXACT), np.maximum(end, _EXACT)
    centre = low + 0.5
    x = (high - low) / centre
    log = np.log1p(x)
    bend = _tail(high) - _tail(low)
    spans = log + bend
    ramps = centre * (_excess(x, log) - bend) - 0.5 * spans
    early = N < _EXACT
    if early.any():
        first, last = N[early], np.minimum(end[early], _EXACT)
        spans[early] += _TABLE[last.astype(np.int64)] - _TABLE[first.astype(np.int64)]
        ramps[early] = n[early] - (first + 1.0) * spans[early]
    return spans, ramps


def _tail(x: np.ndarray) -> np.ndarray:
    """H(x) - log(x + 1/2) - Euler's constant, by its expansion in (x + 1/2)^-2."""
    z = 1.0 / np.square(x + 0.5)
    tail: np.ndarray = z * (1 / 24 - z * (7 / 960 - z * (31 / 8064 - z * (127 / 30720))))
    return tail


def _excess(x: np.ndarray, log: np.ndarray) -> np.ndarray:
    """Excess x - log(1 + x) for x >= 0, given that logarithm; no cancellation where x is small."""
    r = x / (2.0 + x)
    z = r * r
    series = x * r - 2.0 * r * z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9))))
    return np.where(x < _SHORT, series, x - log)
