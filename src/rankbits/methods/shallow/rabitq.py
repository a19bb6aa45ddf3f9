"""RaBitQ: signs of randomly rotated rows, with two bytes of each item that make scores unbiased.

Notation:
    c  mean of the training rows          P  (d, b) planes, a random rotation
    r  (x - c) P, an item                 w  (q - c) P, or q P for inner products: a query
    s  the code of r as -1 and +1         f  <r, s> / (|r| sqrt(b)), the cosine of r and s

Over the random rotation, <w, s> |r| / (sqrt(b) f) has the expectation <w, r>. So an item needs its
code, its norm |r| and its factor f. Both are rounded to a byte: 256 values that lie evenly between
the smallest and the largest of the training rows.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankbits.errors import FileFormatError
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import choice, learned, parameter
from rankbits.methods.shallow.shared.linear import LinearHasher
from rankbits.methods.shallow.shared.principal import principal_directions
from rankbits.methods.shallow.shared.rotation import random_rotation

_LEAST_FACTOR = 1e-6  # a cosine of a row and its signs is 1 / sqrt(b) or more
_LEVELS = 256  # values of a byte


class RaBitQ(LinearHasher):
    """Random rotation and signs, whose scores two bytes of each item correct [1]_.

    With as many bits as features the planes are a rotation. With more bits, rows are extended by
    zeros first; with fewer, they are reduced to their principal directions, and it is their scores
    there that are estimated.

    Parameters
    ----------
    metric : {"l2", "ip"}, default="l2"
        What `correction` makes of scores: Euclidean distances, or inner products. With inner
        products queries are not centered, so they have a map of their own.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows.
    planes_ : ndarray of shape (n_features, n_bits)
        The rotation, after the principal directions if there are fewer bits than features.
    norm_range_ : ndarray of shape (2,)
        Norms that the bytes 0 and 255 stand for.
    factor_range_ : ndarray of shape (2,)
        Factors that the bytes 0 and 255 stand for.

    References
    ----------
    .. [1] J. Gao, C. Long, "RaBitQ: quantizing high-dimensional vectors with a theoretical error
       bound for approximate nearest neighbor search", SIGMOD 2024.

    Examples
    --------
    >>> hasher = RaBitQ(n_bits=2, random_state=0).fit(np.diag([3.0, 2.0, 1.0]))
    >>> hasher.transform(np.eye(3)).shape, hasher.factors(np.eye(3)).shape
    ((3, 1), (3, 2))
    """

    metric: str = parameter("l2", choice("l2", "ip"))
    random_state: Seed = RANDOM_STATE

    norm_range_: np.ndarray = learned("ends")
    factor_range_: np.ndarray = learned("ends")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the rotation, and learn the mean and the ranges of norms and factors.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        n_bits, rows = self.n_bits, self._training_rows(X, y)
        rng = check_random_state(self.random_state)
        if n_bits < rows.shape[1]:
            self.mean_, directions = principal_directions(rows, n_bits, rng)
            self.planes_ = directions @ random_rotation(n_bits, rng)
        else:
            self.mean_ = rows.mean(axis=0)
            self.planes_ = random_rotation(n_bits, rng)[: rows.shape[1]]
        norms, factors = norms_and_factors(self._logits(rows))
        self.norm_range_ = np.array([norms.min(), norms.max()])
        self.factor_range_ = np.array([factors.min(), factors.max()])
        return self

    def factors(self, X: Any) -> np.ndarray:
        """Two bytes for each row as an item, its norm and its factor: uint8 of shape (n, 2)."""
        check_is_fitted(self)
        blocks = []
        for logits in self._blocks(X, self._logits):
            norms, factors = norms_and_factors(logits)
            levels = level_of(norms, self.norm_range_), level_of(factors, self.factor_range_)
            blocks.append(np.stack(levels, axis=1))
        return np.concatenate(blocks)

    def correction(self) -> np.ndarray:
        """What an item's two bytes do to its score <w, s>: float64 of shape (3, 256).

        The first row has the multiplier of each norm, the second that of each factor, the third
        what each norm adds. The corrected score estimates the inner product of a query and an item,
        but for a number that is the same for all items; for "l2" that of (|q - c|² - |q - x|²) / 2.
        """
        check_is_fitted(self)
        steps = np.linspace(0.0, 1.0, _LEVELS)
        norms, factors = (
            low + (high - low) * steps for low, high in (self.norm_range_, self.factor_range_)
        )
        added = -0.5 * norms**2 if self.metric == "l2" else np.zeros(_LEVELS)
        return np.stack([norms / np.sqrt(self.n_bits_), 1.0 / factors, added])

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        super()._restore(arrays, facts)
        for name in ("norm_range", "factor_range"):
            ends = arrays[name]
            if ends.shape != (2,) or not 0 <= ends[0] <= ends[1] or ends[1] == 0:
                raise FileFormatError(
                    f"the model's {name} must be two numbers from 0 on that ascend, got {ends}"
                )
        if not self.factor_range_[0] >= _LEAST_FACTOR:
            raise FileFormatError(f"the model's factor_range must be {_LEAST_FACTOR:g} or more")

    @property
    def _has_query_map(self) -> bool:
        return self.metric == "ip"

    def _query_logits(self, rows: np.ndarray) -> np.ndarray:
        logits: np.ndarray = rows @ self.planes_ if self._has_query_map else self._logits(rows)
        return logits

    def _query_torch_module(self) -> Any:
        from rankbits.methods.onnx_modules import Hyperplanes

        return Hyperplanes(np.zeros_like(self.mean_), self.planes_)


def norms_and_factors(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|r| of each row, and the cosine of the row and its signs; 1 for a row of zeros."""
    norms = np.linalg.norm(logits, axis=1)
    largest = norms * np.sqrt(logits.shape[1])
    return norms, np.divide(
        np.abs(logits).sum(axis=1), largest, out=np.ones_like(norms), where=largest > 0
    )


def level_of(values: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The nearest of 256 levels that lie evenly between two ends, which stand for all beyond.

    >>> level_of(np.array([-1.0, 0.0, 0.5, 9.0]), np.array([0.0, 1.0])).tolist()
    [0, 0, 128, 255]
    """
    low, high = ends
    width = high - low
    with np.errstate(over="ignore"):  # ends may be so near that a share is infinite, and the last
        shares = (values - low) / width if width > 0 else np.zeros_like(values)
    levels: np.ndarray = np.rint(np.clip(shares, 0.0, 1.0) * (_LEVELS - 1)).astype(np.uint8)
    return levels
