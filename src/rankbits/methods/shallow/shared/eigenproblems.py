"""Eigenvectors as hyperplanes.

tr(A'SA) under A'A = I is largest where the columns of A span the eigenvectors of the largest
eigenvalues of S (Ky Fan, 1949); any rotation of them is as good.
"""

import numpy as np
from scipy.linalg import eigh

_LEAST = 1e-10  # of the largest: eigenvalues below are rounding errors


def leading_eigenvectors(matrix: np.ndarray, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors (D, n) of a symmetric matrix and their eigenvalues (n,), the largest first.

    The largest entry of a column is positive, so that the signs are the same everywhere.

    >>> leading_eigenvectors(np.diag([1.0, 3.0, 2.0]), 2)[1]
    array([3., 2.])
    """
    n = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(n - n_vectors, n - 1))
    if len(values) < n_vectors:  # LAPACK may miss some of many equal eigenvalues
        values, vectors = (found[..., n - n_vectors :] for found in eigh(matrix))
    vectors = vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.sign(vectors[largest, np.arange(n_vectors)])
    return vectors, values[::-1]


def inverse_square_root(matrix: np.ndarray) -> np.ndarray:
    """M^(-1/2) of a symmetric matrix without negative eigenvalues, on the span of its eigenvectors.

    Eigenvalues below 1e-10 of the largest count as 0, and their eigenvectors are mapped to 0.

    >>> inverse_square_root(np.diag([4.0, 0.0]))
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    values, vectors = eigh(matrix)
    is_large = values > _LEAST * values[-1]
    vectors, values = vectors[:, is_large], values[is_large]
    root: np.ndarray = (vectors / np.sqrt(values)) @ vectors.T
    return root
