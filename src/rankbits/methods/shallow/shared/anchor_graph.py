"""Anchor graphs: rows are similar if they are near the same anchors.

A row x has weights z(x) on its s nearest anchors, which sum to 1:

    z_j(x) = exp(-gamma |x - a_j|²) / sum over the s nearest anchors i of exp(-gamma |x - a_i|²)

With Z the weights of n rows (n, m) and L = diag(Z'1), rows have the similarities A = Z L^(-1) Z',
whose rows sum to 1. So the graph Laplacian is I - A, and its smoothest vectors are the eigenvectors
of A with the largest eigenvalues. They follow from a matrix as small as the anchors are few: if
M = L^(-1/2) Z'Z L^(-1/2) has the eigenvector v for the eigenvalue e, then

    y = Z w,    w = sqrt(n / e) L^(-1/2) v

is an eigenvector of A for e, with y'y = n. The vector L^(1/2) 1, of eigenvalue 1, gives the
constant one, which tells no rows apart. It is taken off M beforehand, since a graph of several
parts has more vectors of eigenvalue 1, with which it would mix.

For a row that is not in the graph, w'z(x) is Nyström's extension of y.

Notation:
    n  rows    m  anchors    s  nearest anchors of a row    Z  (n, m), s of m are not 0 in a row
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import euclidean_distances

from rankbits.methods.shallow.shared.eigenproblems import leading_eigenvectors

_LEAST = 1e-10  # eigenvalues below are rounding errors; the largest is 1


@dataclass(frozen=True, eq=False)
class AnchorGraph:
    """The map from rows to their nearest anchors and the weights on them.

    Attributes
    ----------
    anchors : ndarray of shape (m, d)
        The anchors.
    gamma : float
        Factor in the exponent of the weights.
    n_nearest : int
        Anchors s that a row has weights on.
    """

    anchors: np.ndarray
    gamma: float
    n_nearest: int

    def weigh(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nearest anchors (n, s) of rows, the nearest first, and the weights on them (n, s)."""
        nearest, squares = nearest_anchors(rows, self.anchors, self.n_nearest)
        weights = np.exp(-self.gamma * (squares - squares[:, :1]))
        return nearest, weights / weights.sum(axis=1, keepdims=True)

    def extend(self, rows: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Weighted means of the rows of `vectors` (m, r) over the nearest anchors, shape (n, r)."""
        nearest, weights = self.weigh(rows)
        extended: np.ndarray = weights[:, :1] * vectors[nearest[:, 0]]
        for k in range(1, self.n_nearest):
            extended += weights[:, k : k + 1] * vectors[nearest[:, k]]
        return extended


def nearest_anchors(
    rows: np.ndarray, anchors: np.ndarray, n_nearest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nearest anchors (n, s) of rows and squared distances (n, s); of equal ones the first."""
    squares = euclidean_distances(rows, anchors, squared=True)
    every_row = np.arange(len(rows))
    nearest, distances = [], []
    for _ in range(n_nearest):
        found = squares.argmin(axis=1)
        nearest.append(found)
        distances.append(squares[every_row, found])
        squares[every_row, found] = np.inf
    return np.stack(nearest, axis=1), np.stack(distances, axis=1)


def weight_matrix(nearest: np.ndarray, weights: np.ndarray, n_anchors: int) -> csr_array:
    """Z as a sparse matrix."""
    n, s = nearest.shape
    starts = np.arange(0, n * s + 1, s)
    return csr_array((weights.ravel(), nearest.ravel(), starts), shape=(n, n_anchors))


def smoothest_vectors(weights: csr_array, n_most: int) -> tuple[np.ndarray, np.ndarray]:
    """The vectors w (m, r) of the smoothest y = Z w, and their eigenvalues (r,), falling.

    There are at most so many, fewer if the graph has fewer that are not constant.
    """
    n, m = weights.shape
    masses = weights.sum(axis=0)
    roots = np.sqrt(masses)
    matrix = (weights.T @ weights).toarray() / np.outer(roots, roots)
    matrix -= np.outer(roots, roots) / n
    vectors, values = leading_eigenvectors(matrix, min(n_most, m))
    is_large = values > _LEAST
    vectors, values = vectors[:, is_large], values[is_large]
    return vectors * np.sqrt(n / values) / roots[:, None], values
