"""CMH: concomitant min hashing, which of a few random directions a row points away from most.

A symbol draws K directions r_1, ..., r_K ~ N(0, I) and is the index of the smallest projection r'x.
The projections of two rows at the angle t have the correlation cos t, so if one row has its least
at an index, the other one's value there, its concomitant, tends to be small as well. Rows agree in
a symbol with a probability that depends on t and K alone and falls from 1 at t = 0 to 1/K at a
right angle. For K = 2 it is LSH: r_1'x < r_2'x is the side of a random plane, and rows agree with
probability 1 - t / pi. Lengths of rows do not count.

The paper uses symbols as keys of hash tables and leaves their bits open. Here they are written in
bits as `symbols` says, where the reason stands. What we changed: rows are centered first, as for
`lsh`, which center=False leaves out.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.errors import FileFormatError
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import flag, integer, learned, parameter
from rankbits.methods.shallow.shared.symbols import SymbolHasher, count_symbols


class CMH(SymbolHasher):
    """Concomitant min hashing: the index of the smallest of a few random projections [1]_.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length. A symbol has ceil(log2 n_directions) bits; the last one may be cut.
    n_directions : int, default=4
        Directions K that a symbol compares.
    center : bool, default=True
        Whether angles are seen from the mean of the training rows; otherwise from the origin.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The point that angles are seen from.
    directions_ : ndarray of shape (n_features, symbols, n_directions)
        Random directions of each symbol.

    References
    ----------
    .. [1] K. Eshghi, S. Rajaram, "Locality sensitive hash functions based on concomitant rank order
       statistics", KDD 2008.

    Examples
    --------
    >>> hasher = CMH(n_bits=8, center=False, random_state=0).fit(np.eye(5))
    >>> row = np.array([[0.3, 0.1, 0.9, 0.5, 0.2]])
    >>> bool((hasher.transform(row) == hasher.transform(100 * row)).all())
    True
    """

    n_directions: int = parameter(4, integer(2))
    center: bool = parameter(True, flag)
    random_state: Seed = RANDOM_STATE

    mean_: np.ndarray = learned("d")
    directions_: np.ndarray = learned("d", "symbols", "values")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the directions.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Only its mean is learned.
        y : ignored
            Its length must be that of X.
        """
        n_bits, n_values, rows = self.n_bits, self.n_directions, self._training_rows(X, y)
        rng = check_random_state(self.random_state)
        shape = rows.shape[1], count_symbols(n_bits, n_values), n_values
        self.mean_ = rows.mean(axis=0) if self.center else np.zeros(rows.shape[1])
        self.directions_ = rng.standard_normal(shape)
        self.code_length_ = n_bits
        return self

    @property
    def _n_values(self) -> int:
        return int(self.directions_.shape[2])

    def _planes(self) -> np.ndarray:
        """Directions whose largest projection is wanted, as columns: (n_features, S K)."""
        planes: np.ndarray = -self.directions_.reshape(len(self.mean_), -1)
        return planes

    def _values(self, rows: np.ndarray) -> np.ndarray:
        projections: np.ndarray = (rows - self.mean_) @ self._planes()
        return projections.reshape(len(rows), *self.directions_.shape[1:])

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        super()._restore(arrays, facts)
        _, n_symbols, n_values = self.directions_.shape
        if n_values < 2 or n_symbols != count_symbols(self.code_length_, n_values):
            raise FileFormatError(
                "the model's directions must be two or more for each symbol of "
                f"{self.code_length_} bits, got shape {self.directions_.shape}"
            )

    def _values_module(self) -> Any:
        from rankbits.methods.onnx_modules import Hyperplanes

        return Hyperplanes(self.mean_, self._planes())
