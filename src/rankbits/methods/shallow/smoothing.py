"""Rows averaged with their nearest neighbors: what near rows share is kept, what is odd is not.

    x̃ = sum over the k nearest x' of x, and x itself, of max(x'x, 0)³ x', scaled to length 1

A neighbor counts by the third power of its cosine, 1 for the row itself: at .8 it counts half, at
.5 an eighth. So rows in dense groups move far towards their group, and lonely ones less. Radenović,
Tolias and Chum (2019) average queries with what they find so, by the same power.
"""

import numpy as np

_POWER = 3
_BLOCK_BYTES = 1 << 26  # of the cosines that are computed at once


def smooth_rows(units: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Rows of length 1, each averaged with its nearest; 0 neighbors leaves them as they are.

    >>> rows = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, -1.0]])
    >>> smooth_rows(rows, 1).round(3).tolist()
    [[0.977, 0.213], [0.909, 0.416], [0.0, -1.0]]
    """
    if n_neighbors == 0 or len(units) == 1:
        return units
    n_averaged = min(n_neighbors + 1, len(units))
    narrow = units.astype(np.float32)
    size = max(1, _BLOCK_BYTES // (narrow.itemsize * len(narrow)))
    smooth = np.empty_like(units)
    for start in range(0, len(narrow), size):
        cosines = narrow[start : start + size] @ narrow.T
        nearest = np.argpartition(cosines, -n_averaged, axis=1)[:, -n_averaged:]
        weights = np.maximum(np.take_along_axis(cosines, nearest, axis=1), 0) ** _POWER
        smooth[start : start + size] = np.einsum("nk,nkd->nd", weights, narrow[nearest])
    lengths = np.linalg.norm(smooth, axis=1, keepdims=True)
    smooth /= np.where(lengths > 0, lengths, 1)
    return smooth
