"""ITQ: principal components, rotated so that their signs lose least.

Notation:
    V  (n, b) centered rows in their principal components    R  (b, b) rotation
    B  (n, b) codes of -1 and +1
"""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits import _check
from rankbits.methods.shallow.learned import Shapes
from rankbits.methods.shallow.linear import LinearHasher
from rankbits.methods.shallow.principal import principal_directions
from rankbits.methods.shallow.rotation import learn_rotation, random_rotation


class ITQ(LinearHasher):
    """Iterative quantization: PCA, then the rotation that brings it nearest to its signs [1]_.

    The loss |B - V R|² falls in turns, see `rotation`.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length, at most the rank of the centered training rows.
    n_iter : int, default=50
        Largest number of turns; they end sooner once no bit changes.
    random_state : int, RandomState or None, default=None
        Seed of the first rotation.

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

    _arrays: ClassVar[Shapes] = {
        "mean": ("d",),
        "components": ("d", "b"),
        "rotation": ("b", "b"),
        "planes": ("d", "b"),
        "quantization_losses": ("turns",),
    }

    components_: np.ndarray
    rotation_: np.ndarray
    quantization_losses_: np.ndarray

    def __init__(self, n_bits: int = 32, *, n_iter: int = 50, random_state: Any = None) -> None:
        self.n_bits = n_bits
        self.n_iter = n_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the principal directions of X and their rotation.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        max_turns = _check.whole("n_iter", self.n_iter, 0)
        n_bits, rows = self._code_length(), self._training_rows(X, y)
        rng = check_random_state(self.random_state)
        self.mean_, self.components_ = principal_directions(rows, n_bits, rng)
        parts = (rows - self.mean_) @ self.components_
        start = random_rotation(n_bits, rng)
        self.rotation_, self.quantization_losses_ = learn_rotation(parts, start, max_turns)
        self.planes_ = self.components_ @ self.rotation_
        return self
