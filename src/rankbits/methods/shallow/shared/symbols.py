"""Bits of symbols: which of a few values is the largest, written in binary.

A symbol compares K values and is the position of the largest, the first of equal ones. Its bits
are those of that position as a binary number of w = ceil(log2 K) digits, most significant first; a
code of b bits has ceil(b / w) symbols, the last of which may be cut.

Why a binary number: positions are drawn at random, so they have no order, and a Gray code would
have nothing to keep. If the symbols of two rows differ, the two positions are any two with equal
probability, and by symmetry their expected distance is the same, w/2 · K/(K - 1) for K a power of
two, whatever the numbering. So the expected Hamming distance is a fixed multiple of the probability
that symbols differ, and the binary number has the most symbols, K/w times as many as one-hot bits.

The logit of a bit is the largest value among the positions that have this bit, less the largest
among those that do not. It is positive exactly if the largest of all has the bit. Where both are
equal, the position decides, and the logit is the least positive number or its negative.

Notation:
    K  values of a symbol    w  bits of a symbol    S  symbols of a code
"""

from abc import abstractmethod
from typing import Any

import numpy as np

from rankbits.methods.parameters.fields import fact
from rankbits.methods.shallow.shared.learned import ArrayHasher

_LEAST = float(np.finfo(np.float64).tiny)


class SymbolHasher(ArrayHasher):
    """Base of the methods whose bits are positions of largest values.

    A method implements `_values`, the values (n, S, K) of a block of rows, sets `_n_values`, and
    for export implements `_values_module`, a torch module of the values (n, S K). Its fit sets
    `code_length_`.
    """

    code_length_: int = fact(int)

    @property
    def n_bits_(self) -> int:
        """Length of the codes of the fitted method."""
        return self.code_length_

    @property
    @abstractmethod
    def _n_values(self) -> int:
        """The number K."""

    @abstractmethod
    def _values(self, rows: np.ndarray) -> np.ndarray:
        """Values that symbols compare, shape (n, S, K)."""

    @abstractmethod
    def _values_module(self) -> Any:
        """A torch module that maps rows to the values, as (n, S K)."""

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        return margins(self._values(rows))[:, : self.n_bits_]

    def _block_rows(self, row_shape: tuple[int, ...]) -> int:
        n_symbols = count_symbols(self.n_bits_, self._n_values)
        return super()._block_rows((max(*row_shape, n_symbols * self._n_values),))

    def _torch_module(self) -> Any:
        from rankbits.methods.onnx_modules import Symbols

        return Symbols(self._values_module(), digits(self._n_values), self.n_bits_, _LEAST)


def digits(n_values: int) -> np.ndarray:
    """Which positions have which bit: bool of shape (w, K), most significant bit first.

    >>> digits(3).astype(int).tolist()
    [[0, 0, 1], [0, 1, 0]]
    """
    width = (n_values - 1).bit_length()
    places = np.arange(width - 1, -1, -1)[:, None]
    is_set: np.ndarray = (np.arange(n_values) >> places & 1).astype(bool)
    return is_set


def count_symbols(n_bits: int, n_values: int) -> int:
    """Symbols of a code of this length.

    >>> count_symbols(13, 4)
    7
    """
    return -(-n_bits // len(digits(n_values)))


def margins(values: np.ndarray) -> np.ndarray:
    """Logits (n, S w) of the bits of all symbols, from the values (n, S, K)."""
    n, n_symbols, n_values = values.shape
    largest, table = values.argmax(axis=2), digits(n_values)
    logits = np.empty((n, n_symbols, len(table)))
    for place, has_bit in enumerate(table):
        margin = values[:, :, has_bit].max(axis=2) - values[:, :, ~has_bit].max(axis=2)
        if_equal = np.where(has_bit[largest], _LEAST, -_LEAST)
        logits[:, :, place] = np.where(margin == 0, if_equal, margin)
    return logits.reshape(n, -1)
