"""What every affinity answers: its shape, its levels, and the levels of a block of pairs."""

import math
from abc import ABC, abstractmethod

import numpy as np

from rankbits import _check
from rankbits._mapped import unchanged
from rankbits.errors import InputError

MAX_LEVELS = 1 << 16
_BLOCK_CELLS = 1 << 20


class Affinity(ABC):
    """Affinity of each (query, item) pair: a level out of a few non-negative integers.

    Attributes
    ----------
    levels : ndarray of int64, shape (V,)
        The values that occur, ascending from 0. Level 0 is irrelevant; all others are relevant.
    shape : (queries, items)
    """

    levels: np.ndarray
    shape: tuple[int, int]

    @abstractmethod
    def indices(self, queries: slice, items: slice) -> np.ndarray:
        """Positions in `levels` of a block of pairs: uint8 if at most 256 levels, else uint16."""

    def block(self, query_rows: np.ndarray, item_rows: np.ndarray) -> np.ndarray:
        """Positions in `levels` of every (query_rows[i], item_rows[j]), as `indices` types them.

        Rows are numbered from 0, in any order, repeats allowed, as in a minibatch.
        """
        positions = np.empty((len(query_rows), len(item_rows)), self.index_dtype)
        for i, query in enumerate(query_rows):
            positions[i] = self.indices(slice(query, query + 1), slice(None))[0, item_rows]
        return positions

    def pairs(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Positions in `levels` of single pairs (queries[j], items[j]); -1 in items gives 0."""
        positions = np.zeros(len(queries), np.int64)
        there = np.flatnonzero(items >= 0)
        there = there[np.argsort(queries[there], kind="stable")]
        names, n_pairs = np.unique(queries[there], return_counts=True)
        ends = np.cumsum(n_pairs)
        for query, start, end in zip(names, ends - n_pairs, ends, strict=True):
            pairs = there[start:end]
            positions[pairs] = self.block(np.array([query]), items[pairs])[0]
        return positions

    def require_same_file(self) -> None:
        """Raise a FileFormatError if a file that an array of it is mapped from has changed."""
        with unchanged(*vars(self).values()):
            pass

    @property
    def index_dtype(self) -> np.dtype:
        """The narrowest dtype that names every level."""
        return np.dtype(np.uint8 if len(self.levels) <= 256 else np.uint16)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, levels={self.levels.tolist()})"


def levels_with_zero(name: str, values: np.ndarray) -> np.ndarray:
    """Distinct levels, ascending from 0, of an array of integers."""
    if values.dtype.kind not in "biu":
        raise InputError(f"{name} must be non-negative integers, got {_check.describe(values)}")
    if values.size and values.min() < 0:
        raise InputError(f"{name} must be non-negative integers, got {values.min()}")
    if values.size and int(values.max()) > np.iinfo(np.int64).max:
        raise InputError(f"{name} must fit in 63 bits, got {values.max()}")
    levels = np.zeros(1, np.int64)
    rows = max(1, _BLOCK_CELLS // max(1, math.prod(values.shape[1:])))
    for start in range(0, len(values), rows):  # a mapped matrix is not pulled into memory at once
        levels = np.union1d(levels, np.unique(values[start : start + rows]).astype(np.int64))
    if len(levels) > MAX_LEVELS:
        raise InputError(
            f"{name} must have at most {MAX_LEVELS} distinct values, got {len(levels)}"
        )
    return levels
