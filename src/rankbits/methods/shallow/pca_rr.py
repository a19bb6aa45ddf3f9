"""PCA-RR: principal components under a random rotation, then signs.

With the principal directions V (d, b) of the centered rows and a uniformly random orthogonal matrix
R (b, b), the code of x is sign(R'V'(x - mean)). PCA gives every component one bit, though the first
ones have most of the variance. R spreads the variance evenly over the bits in expectation: each
column of V R is a uniformly random direction of the space that V spans, so two rows at the angle t
there differ in a bit with probability t / pi, as for random hyperplanes.

The paper on ITQ introduces it as the start of its loop. Nothing is changed. There is no loop here:
`itq` with n_iter=0 draws the same planes.
"""

from typing import Any, Self

from sklearn.utils import check_random_state

from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.shallow.shared.linear import LinearHasher
from rankbits.methods.shallow.shared.principal import principal_directions
from rankbits.methods.shallow.shared.rotation import random_rotation


class PCARR(LinearHasher):
    """PCA under a random rotation: the bits share the variance of the components evenly [1]_.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length, at most the rank of the centered training rows.
    random_state : int, RandomState or None, default=None
        Seed of the rotation, and of PCA's randomized solver, which scikit-learn uses for large X.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows.
    planes_ : ndarray of shape (n_features, n_bits)
        Rotated principal directions, orthonormal columns.

    References
    ----------
    .. [1] Y. Gong, S. Lazebnik, "Iterative quantization: a procrustean approach to learning binary
       codes", CVPR 2011.

    Examples
    --------
    >>> import numpy as np
    >>> PCARR(n_bits=2, random_state=0).fit_transform(np.diag([3.0, 2.0, 1.0])).shape
    (3, 1)
    """

    random_state: Seed = RANDOM_STATE

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the principal directions of X and draw their rotation.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        n_bits, rows = self.n_bits, self._training_rows(X, y)
        rng = check_random_state(self.random_state)
        self.mean_, directions = principal_directions(rows, n_bits, rng)
        self.planes_ = directions @ random_rotation(n_bits, rng)
        return self
