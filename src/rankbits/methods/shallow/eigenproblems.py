"""Eigenvectors as hyperplanes.

tr(A'SA) under A'A = I is largest where the columns of A span the eigenvectors of the largest
eigenvalues of S (Ky Fan, 1949); any rotation of them is as good.
"""

import numpy as np
from scipy.linalg import eigh


def leading_eigenvectors(matrix: np.ndarray, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors (D, n) of a symmetric matrix and their eigenvalues (n,), the largest first.

    The largest entry of a column is positive, so that the signs are the same everywhere.

    >>> leading_eigenvectors(np.diag([1.0, 3.0, 2.0]), 2)[1]
    array([3., 2.])
    """
    n = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(n - n_vectors, n - 1))
    vectors = vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.sign(vectors[largest, np.arange(n_vectors)])
    return vectors, values[::-1]
