"""The maximum of RSH's objective: eigenvectors.

tr(A'SA) under A'A = I is largest where the columns of A span the eigenvectors of the largest
eigenvalues of S (Ky Fan, 1949); any rotation of them is as good.
"""

from typing import Any

import numpy as np
from scipy.linalg import eigh

from rankbits.errors import InputError


def require_directions(centred: np.ndarray, n_bits: int) -> None:
    """Refuse rows that do not vary, and more bits than the directions (n, r) in which they do."""
    if not centred.any():
        raise InputError("X must vary, all its rows are equal; no direction tells them apart")
    rank = centred.shape[1]
    if n_bits > rank:
        raise InputError(
            f"n_bits must be at most {rank}, the directions in which the rows of X vary, got "
            f"{n_bits}; take fewer bits, several tables with n_tables, or kernel='rbf', which has "
            "as many directions as anchors"
        )


def leading_eigenvectors(
    matrix: np.ndarray, n_bits: int
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """The maximum of tr(A'SA) under A'A = I, largest eigenvalue first, and a record of it.

    The largest entry of a column is positive, so that the signs are the same everywhere.
    """
    n = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(n - n_bits, n - 1))
    planes = vectors[:, ::-1]
    largest = np.abs(planes).argmax(axis=0)
    planes = planes * np.sign(planes[largest, np.arange(n_bits)])
    violation = float(np.linalg.norm(planes.T @ planes - np.eye(n_bits)))
    record = {"objective": float(values.sum()), "violation": violation, "steps": 0, "rho": 0.0}
    return planes, [record]
