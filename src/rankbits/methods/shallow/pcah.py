"""PCAH: the signs of the principal components."""

from typing import Any, Self

from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.shallow.shared.linear import LinearHasher
from rankbits.methods.shallow.shared.principal import principal_directions


class PCAH(LinearHasher):
    """PCA hashing: bit k is the sign of the k-th principal component of x [1]_.

    Components are ordered by falling variance, so the first bits of a code carry the most. There
    are no more bits than directions in which the training rows vary.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length, at most the rank of the centered training rows.
    random_state : int, RandomState or None, default=None
        Seed of PCA's randomized solver, which scikit-learn uses for large X.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows.
    planes_ : ndarray of shape (n_features, n_bits)
        Principal directions, orthonormal columns.

    References
    ----------
    .. [1] J. Wang, S. Kumar, S.-F. Chang, "Semi-supervised hashing for scalable image retrieval",
       CVPR 2010.

    Examples
    --------
    >>> import numpy as np
    >>> PCAH(n_bits=2).fit_transform(np.diag([3.0, 2.0, 1.0])).shape
    (3, 1)
    """

    random_state: Seed = RANDOM_STATE

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the principal directions of X.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        rows = self._training_rows(X, y)
        self.mean_, self.planes_ = principal_directions(rows, self.n_bits, self.random_state)
        return self
