"""Anchors: coordinates of the RBF kernel's feature space, in the span of a few training rows.

k(x, y) = exp(-gamma |x - y|^2) is an inner product in a space too large to write down. Projected on
the span of m anchor rows, a row x has the coordinates

    z(x) = K^(-1/2) k(x),    k(x) = (k(x, a_1), ..., k(x, a_m)),    K = (k(a_i, a_j))

in an orthonormal basis, so that z(x) . z(y) = k(x, y) wherever x or y is an anchor (Williams &
Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000). A linear method on z is
the kernel method itself: lengths, angles and orthogonality are those of the feature space.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.metrics.pairwise import euclidean_distances

from rankbits import _check
from rankbits.errors import InputError

_SAMPLE = 512
_LEAST = 1e-10  # of the largest: eigenvalues and squared distances below are rounding errors


@dataclass(frozen=True, eq=False)
class RbfAnchors:
    """The map from rows (n, d) to their coordinates (n, r) in the span of the anchors.

    Attributes
    ----------
    rows : ndarray of shape (m, d)
        The anchors.
    basis : ndarray of shape (m, r)
        Columns of K^(-1/2) in the basis of K's eigenvectors; r is K's rank, as far as doubles tell.
    gamma : float
    """

    rows: np.ndarray
    basis: np.ndarray
    gamma: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Coordinates of rows."""
        coordinates: np.ndarray = rbf(x, self.rows, self.gamma) @ self.basis
        return coordinates


def rbf(x: np.ndarray, y: np.ndarray, gamma: float) -> np.ndarray:
    """exp(-gamma |x - y|^2) of every pair of rows, shape (n, m)."""
    kernel: np.ndarray = np.exp(-gamma * euclidean_distances(x, y, squared=True))
    return kernel


def draw_anchors(
    rows: np.ndarray, n_anchors: Any, gamma: Any, rng: np.random.RandomState
) -> RbfAnchors:
    """Anchors drawn among the rows, all of them if there are no more.

    Rows must differ. Without a gamma it is 1 / median |x - a|^2 over a sample and the anchors.
    """
    m = min(_check.whole("n_anchors", n_anchors, 1), len(rows))
    anchors = rows[rng.choice(len(rows), m, replace=False)]
    width = _gamma(rows, anchors, rng) if gamma is None else _positive("gamma", gamma)
    values, vectors = eigh(rbf(anchors, anchors, width))
    kept = values > _LEAST * values[-1]
    return RbfAnchors(anchors, vectors[:, kept] / np.sqrt(values[kept]), width)


def _gamma(rows: np.ndarray, anchors: np.ndarray, rng: np.random.RandomState) -> float:
    sample = rows[rng.choice(len(rows), min(len(rows), _SAMPLE), replace=False)]
    squares = euclidean_distances(sample, anchors, squared=True)
    apart = squares > _LEAST * squares.max()  # a row's distance to itself may be a rounding error
    return float(1.0 / np.median(squares[apart]))


def _positive(name: str, value: Any) -> float:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 < value < np.inf:
        raise InputError(f"{name} must be a positive number or None, got {value!r}")
    return float(value)
