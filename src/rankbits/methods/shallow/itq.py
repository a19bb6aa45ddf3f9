"""ITQ: principal components, rotated so that their signs lose least.

Notation:
    V  (n, b) centered rows in their principal components    R  (b, b) rotation
    B  (n, b) codes of -1 and +1
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import integer, learned, parameter
from rankbits.methods.shallow.shared.linear import LinearHasher
from rankbits.methods.shallow.shared.principal import principal_directions
from rankbits.methods.shallow.shared.rotation import learn_rotation, random_rotation


class ITQ(LinearHasher):
    """Iterative quantization: PCA, then the rotation that brings it nearest to its signs [1]_.

    The loss |B - V R|² falls in turns, see `rotation`.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length, at most the rank of the centered training rows.
    n_iter : int, default=50
        Largest number of turns; they end sooner once no bit changes.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows.
    components_ : ndarray of shape (n_features, n_bits)
        Principal directions, orthonormal columns.
    rotation_ : ndarray of shape (n_bits, n_bits)
        R, orthogonal.
    planes_ : ndarray of shape (n_features, n_bits)
        Their product, the normals of the hyperplanes.
    quantization_losses_ : ndarray of shape (turns + 1,)
        |B - V R|² / n of the first rotation and after each turn; it never rises.

    References
    ----------
    .. [1] Y. Gong, S. Lazebnik, "Iterative quantization: a procrustean approach to learning binary
       codes", CVPR 2011.

    Examples
    --------
    >>> ITQ(n_bits=2, random_state=0).fit_transform(np.diag([3.0, 2.0, 1.0])).shape
    (3, 1)
    """

    n_iter: int = parameter(50, integer(0))
    random_state: Seed = RANDOM_STATE

    components_: np.ndarray = learned("d", "b")
    rotation_: np.ndarray = learned("b", "b")
    quantization_losses_: np.ndarray = learned("turns")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the principal directions of X and their rotation.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        n_bits, rows = self.n_bits, self._training_rows(X, y)
        rng = check_random_state(self.random_state)
        self.mean_, self.components_ = principal_directions(rows, n_bits, rng)
        parts = (rows - self.mean_) @ self.components_
        start = random_rotation(n_bits, rng)
        self.rotation_, self.quantization_losses_ = learn_rotation(parts, start, self.n_iter)
        self.planes_ = self.components_ @ self.rotation_
        return self
