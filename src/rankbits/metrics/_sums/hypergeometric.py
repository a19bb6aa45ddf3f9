"""How many positives of a tie make a cutoff that splits it.

Notation:
    n, p  items and positives in the tie     m  its places inside the cutoff
    r     positives among those m places: w(r) = C(p, r) C(n - p, m - r) / C(n, m)

The ratio of neighboring weights is rational, so weights grow outwards from the mode and are then
scaled to sum to 1; differences of log-gammas would lose nine digits at n = 10^6.
"""

from collections.abc import Callable

import numpy as np

from rankbits.metrics._sums.ties import CutTie

_CELLS = 1 << 18  # weights held at once: a few arrays of 2 MB

Value = Callable[[np.ndarray, np.ndarray], np.ndarray]


def expectation(cut: CutTie, value: Value) -> np.ndarray:
    """Sum over r of w(r) value(rows, r), one per query; equation (w) of docs/math.md.

    `value` gets a column of query numbers and a matrix of r, and may not be negative.
    """
    mode = np.floor((cut.m + 1.0) * (cut.p + 1.0) / (cut.n + 2.0))
    mode = np.clip(mode, cut.fewest(), cut.most())
    reach = _reach(cut, mode)
    means = np.empty(len(mode))
    order = np.argsort(reach)
    while order.size:  # widest first, so that the rows of a chunk are of like width
        width = int(reach[order[-1]])
        size = max(1, _CELLS // (2 * width + 1))
        rows, order = order[-size:], order[:-size]
        r, weights = _window(cut[rows], mode[rows], width)
        means[rows] = (weights * value(rows[:, None], r)).sum(axis=1) / weights.sum(axis=1)
    return means


def _reach(cut: CutTie, mode: np.ndarray) -> np.ndarray:
    """Steps from the mode beyond which Bernstein's inequality leaves less than exp(-40)."""
    rate, share = cut.p / cut.n, cut.m / cut.n
    variance = np.minimum(cut.m * rate * (1.0 - rate), cut.p * share * (1.0 - share))
    needed = np.ceil(16.0 + np.sqrt(180.0 + 80.0 * variance))
    possible = np.maximum(mode - cut.fewest(), cut.most() - mode)
    reach: np.ndarray = np.minimum(needed, possible)
    return reach


def _window(cut: CutTie, mode: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers r = mode - width .. mode + width, clipped to what can be, and w(r) / w(mode)."""
    step = np.arange(1.0, width + 1.0)
    n, p, m, top = (column[:, None] for column in (cut.n, cut.p, cut.m, mode))
    up, down = top + step, top - step
    rise = (p - up + 1.0) * (m - up + 1.0) / (up * (n - p - m + up))
    fall = (down + 1.0) * (n - p - m + down + 1.0) / ((p - down) * (m - down))
    weights = np.concatenate(
        [fall.cumprod(axis=1)[:, ::-1], np.ones_like(top), rise.cumprod(axis=1)], axis=1
    )
    r = np.concatenate([down[:, ::-1], top, up], axis=1)
    return np.clip(r, cut.fewest()[:, None], cut.most()[:, None]), weights
