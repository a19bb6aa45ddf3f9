"""PCAH: the signs of the principal components."""

from typing import Any, Self

import numpy as np

from rankbits.errors import InputError
from rankbits.methods._linear import LinearHasher


class PCAH(LinearHasher):
    """PCA hashing: bit k is the sign of the k-th principal component of x [1]_.

    Components come by falling variance, so the first bits of a code carry the most. There are no
    more bits than directions in which the training rows vary.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length, at most the rank of the centred training rows.
    random_state : int, RandomState or None, default=None
        Seed of PCA's randomised solver, which scikit-learn takes for large X.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows.
    planes_ : ndarray of shape (n_features, n_bits)
        Principal directions, orthonormal columns.

    .. [1] J. Wang, S. Kumar, S.-F. Chang, "Semi-supervised hashing for scalable image retrieval",
       CVPR 2010.

    >>> PCAH(n_bits=2).fit_transform(np.diag([3.0, 2.0, 1.0])).shape
    (3, 1)
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the principal directions of X; y is ignored."""
        n_bits, rows = self._asked_bits(), self._training_rows(X)
        self.mean_, self.planes_ = principal_directions(rows, n_bits, self.random_state)
        return self


def principal_directions(
    rows: np.ndarray, n_directions: int, random_state: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The mean (d,) and the first principal directions (d, b); too many are refused."""
    from sklearn.decomposition import PCA  # slow to import, and only fitting needs it

    n, d = rows.shape
    if n < 2:
        raise InputError("X must have at least 2 rows to vary in any direction, got n_samples = 1")
    if n_directions > min(n, d):
        raise InputError(
            f"n_bits must be at most {min(n, d)}, the principal directions that {n} rows of {d} "
            f"features can have, got {n_directions}; take fewer bits, or a method without this "
            "limit such as lsh"
        )
    if (rows == rows[0]).all():
        raise InputError("X must vary, all its rows are equal; no direction tells them apart")
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
