"""ITQ: principal components, rotated so that their signs lose least.

Notation:
    V  (n, b) centred rows in their principal components    R  (b, b) rotation
    B  (n, b) codes of -1 and +1
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits import _check
from rankbits.errors import FileFormatError
from rankbits.methods._linear import LinearHasher, require_arrays
from rankbits.methods._pcah import principal_directions


class ITQ(LinearHasher):
    """Iterative quantisation: PCA, then the rotation that brings it nearest to its signs [1]_.

    The loss |B - V R|^2 falls in turns: for fixed R the best B is sign(V R); for fixed B the best R
    is Procrustes', R = P Q' where P S Q' = V'B is a singular value decomposition.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length, at most the rank of the centred training rows.
    n_iter : int, default=50
        Turns at most; they end sooner once no bit changes.
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
    quantisation_losses_ : ndarray of shape (turns + 1,)
        |B - V R|^2 / n of the first rotation and after each turn; it never rises.

    .. [1] Y. Gong, S. Lazebnik, "Iterative quantization: a procrustean approach to learning binary
       codes", CVPR 2011.

    >>> ITQ(n_bits=2, random_state=0).fit_transform(np.diag([3.0, 2.0, 1.0])).shape
    (3, 1)
    """

    components_: np.ndarray
    rotation_: np.ndarray
    quantisation_losses_: np.ndarray

    def __init__(self, n_bits: int = 32, *, n_iter: int = 50, random_state: Any = None) -> None:
        self.n_bits = n_bits
        self.n_iter = n_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the principal directions of X and their rotation; y is ignored."""
        n_turns = _check.whole("n_iter", self.n_iter, 0)
        n_bits, rows = self._asked_bits(), self._training_rows(X)
        rng = check_random_state(self.random_state)
        self.mean_, self.components_ = principal_directions(rows, n_bits, rng)
        parts = (rows - self.mean_) @ self.components_
        start = random_rotation(n_bits, rng)
        self.rotation_, self.quantisation_losses_ = least_loss_rotation(parts, start, n_turns)
        self.planes_ = self.components_ @ self.rotation_
        return self

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {
            "mean": self.mean_,
            "components": self.components_,
            "rotation": self.rotation_,
            "planes": self.planes_,
            "quantisation_losses": self.quantisation_losses_,
        }
        return arrays, {}

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        shapes: dict[str, tuple[str, ...]] = {
            "mean": ("d",),
            "components": ("d", "b"),
            "rotation": ("b", "b"),
            "planes": ("d", "b"),
            "quantisation_losses": ("turns",),
        }
        require_arrays(arrays, facts, shapes, {"d": self.n_features_in_})
        if len(arrays["quantisation_losses"]) == 0:
            raise FileFormatError("the model's quantisation_losses must not be empty")
        for name, array in arrays.items():
            setattr(self, f"{name}_", array)


def random_rotation(size: int, rng: np.random.RandomState) -> np.ndarray:
    """An orthogonal matrix, uniform among all: QR with the diagonal of R made positive."""
    orthogonal, upper = np.linalg.qr(rng.standard_normal((size, size)))
    rotation: np.ndarray = orthogonal * np.sign(np.diag(upper))
    return rotation


def least_loss_rotation(
    parts: np.ndarray, rotation: np.ndarray, n_turns: int
) -> tuple[np.ndarray, np.ndarray]:
    """Turns of ITQ from a first rotation: the last rotation and the losses on the way."""
    turned = parts @ rotation
    bits = turned > 0
    losses = [_loss(turned)]
    for _ in range(n_turns):
        left, _, right = np.linalg.svd(parts.T @ np.where(bits, 1.0, -1.0))
        rotation = left @ right
        turned = parts @ rotation
        losses.append(_loss(turned))
        before, bits = bits, turned > 0
        if np.array_equal(before, bits):
            break
    return rotation, np.array(losses)


def _loss(turned: np.ndarray) -> float:
    """|B - V R|^2 / n with B = sign(V R), since |x - sign(x)| = ||x| - 1|."""
    return float(((np.abs(turned) - 1.0) ** 2).sum() / len(turned))
