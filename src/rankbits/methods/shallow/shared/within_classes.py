"""How rows differ within their classes, and the space in which that counts alike everywhere."""

import numpy as np

_SHRINKAGE = 0.1  # of S towards a multiple of the identity


def whiten_within_classes(rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """S^(-1/2), S the shrunk covariance of the rows about the means of their classes."""
    _, members = np.unique(classes, return_inverse=True)
    sums = np.zeros((members.max() + 1, rows.shape[1]))
    np.add.at(sums, members, rows)
    residuals = rows - (sums / np.bincount(members)[:, None])[members]
    covariance = residuals.T @ residuals / len(rows)
    level = np.trace(covariance) / len(covariance)
    if level == 0:  # rows of a class are equal: nothing to discount
        return np.eye(len(covariance))
    shrunk = (1 - _SHRINKAGE) * covariance + _SHRINKAGE * level * np.eye(len(covariance))
    variances, vectors = np.linalg.eigh(shrunk)
    whitening: np.ndarray = vectors / np.sqrt(variances) @ vectors.T
    return whitening
