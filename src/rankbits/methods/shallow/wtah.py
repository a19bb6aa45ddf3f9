"""WTAH: winner takes all, codes of the order of a row's features.

A symbol draws a random permutation of the features, looks at the first K and is the position of
the largest of them. A map of the features that keeps their order, such as a scale, an offset or
any rising function applied to all of them alike, changes no code. Two rows agree in a symbol with
the probability that the same one of K random features is the largest in both, a measure of how far
their orders agree; for K = 2 it is Kendall's: the share of pairs of features in the same order.

The symbol is written in bits as `symbols` says. What we changed: rows with fewer than K features
compare all of them. The paper's products of permutations (its polynomial kernel) are left out.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.errors import FileFormatError, InputError
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import integer, learned, parameter
from rankbits.methods.shallow.shared.symbols import SymbolHasher, count_symbols


class WTAH(SymbolHasher):
    """Winner-take-all hashing: which of a few random features is the largest [1]_.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length. A symbol has ceil(log2 window) bits; the last one may be cut.
    window : int, default=4
        Features K that a symbol compares; with fewer features, all of them. The larger, the more
        the largest features count.

    Attributes
    ----------
    columns_ : ndarray of int64, shape (symbols, window)
        Features that each symbol compares, in their order.

    References
    ----------
    .. [1] J. Yagnik, D. Strelow, D. A. Ross, R.-S. Lin, "The power of comparative reasoning",
       ICCV 2011.

    Examples
    --------
    >>> hasher = WTAH(n_bits=8, random_state=0).fit(np.eye(5))
    >>> row = np.array([[0.3, 0.1, 0.9, 0.5, 0.2]])
    >>> bool((hasher.transform(row) == hasher.transform(np.exp(10 * row))).all())
    True
    """

    window: int = parameter(4, integer(2))
    random_state: Seed = RANDOM_STATE

    columns_: np.ndarray = learned("symbols", "window", dtype=np.int64)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the features that are compared.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Only its number of features is used.
        y : ignored
            Its length must be that of X.
        """
        n_bits, rows = self.n_bits, self._training_rows(X, y)
        n_features = rows.shape[1]
        if n_features < 2:
            raise InputError("X must have at least 2 features to compare, got n_features = 1")
        rng, window = check_random_state(self.random_state), min(self.window, n_features)
        draws = rng.random_sample((count_symbols(n_bits, window), n_features))
        self.columns_ = draws.argsort(axis=1, kind="stable")[:, :window].astype(np.int64)
        self.code_length_ = n_bits
        return self

    @property
    def _n_values(self) -> int:
        return int(self.columns_.shape[1])

    def _values(self, rows: np.ndarray) -> np.ndarray:
        values: np.ndarray = rows[:, self.columns_]
        return values

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        super()._restore(arrays, facts)
        n_symbols, window = self.columns_.shape
        is_known = (self.columns_ >= 0).all() and (self.columns_ < self.n_features_in_).all()
        if not is_known or window < 2 or n_symbols != count_symbols(self.code_length_, window):
            raise FileFormatError(
                f"the model's columns must be features from 0 to {self.n_features_in_ - 1}, two or "
                f"more for each symbol of {self.code_length_} bits"
            )

    def _values_module(self) -> Any:
        from rankbits.methods.onnx_modules import ChosenFeatures

        columns = self.columns_.ravel()
        return ChosenFeatures(columns, np.zeros(len(columns)))
