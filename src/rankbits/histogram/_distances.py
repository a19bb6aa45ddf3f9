"""Distances of real-valued queries to binary codes, block by block.

A ranking by real numbers is counted (`_ranked.py`) from whatever can say how far items are: a
`DistanceSource` opens blocks of items, and a block gives exact distances of single pairs and rough
ones of all pairs, with a bound on their error. Smaller is nearer.
"""

from typing import Any, Protocol

import numpy as np

from rankbits import _check, _native
from rankbits.codes import BinaryCodes
from rankbits.codes.real_numbers import real_numbers, score_codes
from rankbits.errors import InputError

_BLOCK_BYTES = 1 << 19  # of the codes of a block


class ItemBlock(Protocol):
    """Some items of a database, whose distances to all queries can be asked for."""

    def exact(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Distances of single pairs (queries[j], items[j]), equal queries together, as float64.

        Items are numbered from the first of the block. Equal items have equal distances, whatever
        the block.
        """
        ...

    def rough(
        self, queries: slice | np.ndarray, *, is_quick: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distances (queries, items), and how far those of each query may be off.

        They are float64, or float32 if they may be quick rather than near.
        """
        ...


class DistanceSource(Protocol):
    """Queries and items of which each pair has a distance.

    Attributes
    ----------
    shape : (queries, items)
    most_items : items that a block may have at most
    what : what both sides are, for error messages

    """

    shape: tuple[int, int]
    most_items: int
    what: str

    def open_block(self, items: slice, n_threads: int | None) -> ItemBlock:
        """The items of a slice, with so many threads to work on them; None takes all."""
        ...


class CodeDistances:
    """Minus the score of a code for a real-valued query (`codes.real_numbers`).

    Sums are in double and rounded to float32: the score that `HammingIndex.search_real` returns,
    to the last bit, so that what it calls equal is a tie.

    Parameters
    ----------
    weights : array-like of shape (queries, b) or (queries, 16 * ceil(b / 4))
        A finite real number for each bit of the codes, or 16 for every four of them.
    database : BinaryCodes
        Codes of the items, which must not be empty.
    """

    def __init__(self, weights: Any, database: BinaryCodes) -> None:
        if not isinstance(database, BinaryCodes) or len(database) == 0:
            raise InputError(
                f"database must be BinaryCodes of some items, got {_check.describe(database)}"
            )
        rows = _check.array_2d("query_weights", weights, columns=str(database.n_bits))
        self.weights = real_numbers("query_weights", rows, database.n_bits)
        self.database = database
        self.shape = (len(self.weights), len(database))
        self.most_items = max(1, _BLOCK_BYTES // database.packed.shape[1])
        self.what = "codes"

    def open_block(self, items: slice, n_threads: int | None) -> "_CodeBlock":
        """The codes of a slice of items."""
        return _CodeBlock(self.weights, self.database[items], _native.threads(n_threads))


class _CodeBlock:
    def __init__(self, weights: np.ndarray, codes: BinaryCodes, n_threads: int) -> None:
        self._weights, self._n_bits, self._n_threads = weights, codes.n_bits, n_threads
        self._packed = codes.packed

    def exact(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        starts = np.flatnonzero(np.diff(queries, prepend=-1))
        n_pairs = np.diff(starts, append=len(queries))
        return self._sums(self._weights[queries[starts]], self._packed[items], n_pairs)

    def rough(
        self, queries: slice | np.ndarray, *, is_quick: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        weights, n_items = self._weights[queries], len(self._packed)
        distances = np.empty((len(weights), n_items))
        for start in range(0, len(weights), self._n_threads):  # each thread has a query of its own
            some = weights[start : start + self._n_threads]
            codes = np.tile(self._packed, (len(some), 1))
            sums = self._sums(some, codes, np.full(len(some), n_items))
            distances[start : start + len(some)] = sums.reshape(len(some), n_items)
        return distances, np.zeros(len(weights))

    def _sums(self, weights: np.ndarray, codes: np.ndarray, n_codes: np.ndarray) -> np.ndarray:
        """Distances of the codes, of which the first n_codes[0] belong to the first weights."""
        scores = score_codes(weights, self._n_bits, codes, n_codes, self._n_threads)
        return 0.0 - scores.astype(np.float32).astype(np.float64)
