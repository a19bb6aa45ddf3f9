"""LSH: random hyperplanes, the baseline that every learned code must beat."""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import flag, parameter
from rankbits.methods.shallow.shared.linear import LinearHasher


class LSH(LinearHasher):
    """Random hyperplane hashing: bit k is the side of hyperplane k that x lies on [1]_.

    Two rows at angle t, seen from the point where the hyperplanes meet, agree in a bit with
    probability 1 - t / pi.

    Parameters
    ----------
    center : bool, default=True
        Whether the hyperplanes meet in the mean of the training rows; otherwise in the origin.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The point where the hyperplanes meet.
    planes_ : ndarray of shape (n_features, n_bits)
        Normals of the hyperplanes.

    References
    ----------
    .. [1] M. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002.

    Examples
    --------
    >>> LSH(n_bits=12, random_state=0).fit_transform(np.eye(3)).shape
    (3, 2)
    """

    center: bool = parameter(True, flag)
    random_state: Seed = RANDOM_STATE

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the hyperplanes.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Only its mean is learned.
        y : ignored
            Its length must be that of X.
        """
        n_bits, rows = self.n_bits, self._training_rows(X, y)
        rng = check_random_state(self.random_state)
        self.mean_ = rows.mean(axis=0) if self.center else np.zeros(rows.shape[1])
        self.planes_ = rng.standard_normal((rows.shape[1], n_bits))
        return self
