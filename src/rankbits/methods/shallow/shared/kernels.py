"""The RBF kernel and its anchors: rows described by how near they are to some training rows.

With k(x, y) = exp(-gamma |x - y|²) and m anchors a_1, ..., a_m, a row x has the features

    k(x) = (k(x, a_1), ..., k(x, a_m))

and, in an orthonormal basis of the span of the anchors in the kernel's feature space,

    z(x) = K^(-1/2) k(x),    K = (k(a_i, a_j))

so that z(x) . z(y) = k(x, y) wherever x or y is an anchor (Williams & Seeger, "Using the Nyström
method to speed up kernel machines", NIPS 2000). A linear method on z is the kernel method itself:
lengths, angles and orthogonality are those of the feature space.

The bandwidth has one name and one rule in every method: `gamma` is the factor in the exponent, and
None stands for 1 / median |x - a|² over the anchors and a sample of the rows.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from sklearn.metrics.pairwise import euclidean_distances

from rankbits.methods.shallow.shared.principal import require_variation

_SAMPLE = 512
_LEAST = 1e-10  # of the largest: eigenvalues and squared distances below are rounding errors


@dataclass(frozen=True, eq=False)
class RbfAnchors:
    """The map from rows (n, d) to features (n, m), or to coordinates (n, r) if there is a basis.

    Attributes
    ----------
    rows : ndarray of shape (m, d)
        The anchors.
    gamma : float
        Factor in the exponent of the kernel.
    basis : ndarray of shape (m, r) or None
        Columns of K^(-1/2) in the basis of K's eigenvectors; r is the numerical rank of K.
    """

    rows: np.ndarray
    gamma: float
    basis: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Store the basis by columns: a loaded model then rounds exactly as the fitted one did."""
        if self.basis is not None:
            object.__setattr__(self, "basis", np.asfortranarray(self.basis))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Features or coordinates of rows."""
        features = rbf(x, self.rows, self.gamma)
        return features if self.basis is None else features @ self.basis

    @property
    def n_columns(self) -> int:
        """Columns of the result: m, or r if there is a basis."""
        return len(self.rows) if self.basis is None else self.basis.shape[1]

    def orthonormalize(self) -> "RbfAnchors":
        """The same anchors, with coordinates in an orthonormal basis of their span."""
        values, vectors = eigh(rbf(self.rows, self.rows, self.gamma))
        is_large = values > _LEAST * values[-1]
        return replace(self, basis=vectors[:, is_large] / np.sqrt(values[is_large]))


def rbf(x: np.ndarray, y: np.ndarray, gamma: float) -> np.ndarray:
    """exp(-gamma |x - y|²) of every pair of rows, shape (n, m)."""
    kernel: np.ndarray = np.exp(-gamma * euclidean_distances(x, y, squared=True))
    return kernel


def draw_anchors(
    rows: np.ndarray, n_anchors: int, gamma: float | None, rng: np.random.RandomState
) -> RbfAnchors:
    """Anchors drawn among the rows without repeats; all rows if there are no more than that.

    Rows that are all equal are refused.
    """
    require_variation(rows)
    m = min(n_anchors, len(rows))
    anchors = rows[rng.choice(len(rows), m, replace=False)]
    return RbfAnchors(anchors, median_gamma(rows, anchors, rng) if gamma is None else gamma)


def choose_gamma(rows: np.ndarray, gamma: float | None, rng: np.random.RandomState) -> float:
    """The given gamma, or for None 1 / median |x - y|² over pairs of at most 512 rows."""
    if gamma is not None:
        return gamma
    require_variation(rows)
    sample = rows[rng.choice(len(rows), min(len(rows), _SAMPLE), replace=False)]
    return median_gamma(sample, sample, rng)


def median_gamma(
    rows: np.ndarray, anchors: np.ndarray, rng: np.random.RandomState | np.random.Generator
) -> float:
    """1 / median |x - a|² over the anchors a and at most 512 rows x; pairs of equals are left out.

    >>> median_gamma(np.array([[0.0], [2.0]]), np.array([[0.0]]), np.random.RandomState(0))
    0.25
    """
    sample = rows[rng.choice(len(rows), min(len(rows), _SAMPLE), replace=False)]
    squares = euclidean_distances(sample, anchors, squared=True)
    is_apart = (
        squares > _LEAST * squares.max()
    )  # a row's distance to itself may be a rounding error
    return float(1.0 / np.median(squares[is_apart]))
