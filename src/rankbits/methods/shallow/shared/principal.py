"""Directions of rows: the principal ones, and the space that the rows span."""

from typing import Any

import numpy as np

from rankbits.errors import InputError


def principal_directions(
    rows: np.ndarray, n_directions: int, random_state: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The mean (d,) of the rows and their first principal directions (d, b), by falling variance.

    More directions than the rows vary in are refused: the rest would be rounding errors.
    """
    from sklearn.decomposition import PCA  # slow to import, and only fitting needs it

    n, d = rows.shape
    require_variation(rows)
    if n_directions > min(n, d):
        raise InputError(
            f"n_bits must be at most {min(n, d)}, the principal directions that {n} rows of {d} "
            f"features can have, got {n_directions}; take fewer bits, or a method without this "
            "limit such as lsh"
        )
    mean: np.ndarray = rows.mean(axis=0)  # taken off first: PCA may square what it is given
    pca = PCA(n_directions, random_state=random_state).fit(rows - mean)
    variances = pca.explained_variance_
    rank = int(np.sum(variances > variances[0] * max(n, d) * np.finfo(float).eps))
    if n_directions > rank:
        raise InputError(
            f"n_bits must be at most {rank}, the directions in which the rows of X vary, "
            f"got {n_directions}; further bits would be rounding errors"
        )
    return mean, np.ascontiguousarray(pca.components_.T)


def leading_directions(centered: np.ndarray, n_most: int) -> np.ndarray:
    """Principal directions (d, k) in which centered rows vary, at most so many, by variance."""
    n, d = centered.shape
    variances, vectors = np.linalg.eigh(centered.T @ centered / n)
    order = np.argsort(-variances, kind="stable")[:n_most]
    least = variances.max() * max(n, d) * np.finfo(np.float32).eps  # inputs are float32
    directions: np.ndarray = vectors[:, order[variances[order] > least]]
    return directions


def require_variation(rows: np.ndarray) -> None:
    """Refuse rows that are all equal, and a single one."""
    if len(rows) < 2:
        raise InputError("X must have at least 2 rows to vary in any direction, got n_samples = 1")
    if (rows == rows[0]).all():
        raise InputError("X must vary, but all its rows are equal: no direction tells them apart")


def root_mean_square(centered: np.ndarray) -> float:
    """The root mean square of the lengths of centered rows."""
    return float(np.linalg.norm(centered) / np.sqrt(len(centered)))


def require_directions(parts: np.ndarray, n_bits: int, more: str) -> None:
    """Refuse more bits than the directions r in which rows of coordinates (n, r) vary.

    `more` says what has more directions.
    """
    rank = parts.shape[1]
    if n_bits > rank:
        raise InputError(
            f"n_bits must be at most {rank}, the directions in which the rows of X vary, got "
            f"{n_bits}; take fewer bits, or {more}"
        )


def span_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (n, r) of the rows and an orthonormal basis (d, r) of the space they span.

    Planes learn nothing along directions in which no row has a part, and learning may cost r²
    numbers. Rows that span all of their space have their own coordinates.
    """
    n, d = rows.shape
    if n < d:
        _, lengths, right = np.linalg.svd(rows, full_matrices=False)
        values, vectors = lengths**2, right.T
    else:
        values, vectors = np.linalg.eigh(rows.T @ rows)
    is_spanned = values > values.max() * max(n, d) * np.finfo(float).eps
    if is_spanned.sum() == d:
        return rows, np.eye(d)
    return rows @ vectors[:, is_spanned], vectors[:, is_spanned]
