"""Affinity given as a dense matrix of levels."""

from typing import Any

import numpy as np

from rankbits import _check
from rankbits.affinity._base import Affinity, levels_with_zero
from rankbits.errors import InputError


class Levels(Affinity):
    """A (Q, N) matrix of levels. Build it with `rankbits.affinity.levels`.

    Parameters
    ----------
    matrix : ndarray of shape (Q, N), integers or bool
        The level of each pair of a query and an item, not negative. It may be memory-mapped.
    """

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix
        self.shape = (matrix.shape[0], matrix.shape[1])
        self.levels = levels_with_zero("levels", matrix)
        self._is_dense = bool(self.levels[-1] == len(self.levels) - 1)

    def indices(self, queries: slice, items: slice) -> np.ndarray:
        return self._positions(self.matrix[queries, items])

    def block(self, query_rows: np.ndarray, item_rows: np.ndarray) -> np.ndarray:
        return self._positions(self.matrix[np.ix_(query_rows, item_rows)])

    def _positions(self, block: np.ndarray) -> np.ndarray:
        if not self._is_dense:
            block = np.searchsorted(self.levels, block.astype(np.int64))
        return np.ascontiguousarray(block, dtype=self.index_dtype)


def levels(matrix: Any) -> Levels:
    """Affinity as given: a (Q, N) array of non-negative integers, 0 = irrelevant.

    Parameters
    ----------
    matrix : array-like of shape (Q, N), integers or bool
        The level of each pair of a query (row) and an item (column). At most 65,536 distinct
        levels may occur, and floating-point numbers are refused.

    >>> levels([[0, 3, 1]]).levels.tolist()
    [0, 1, 3]
    """
    array = _check.array_2d("levels", matrix, columns="items")
    if array.dtype.kind == "f":
        raise InputError(
            f"levels must be integers, got {_check.describe(array)}; round and cast them first"
        )
    return Levels(array)
