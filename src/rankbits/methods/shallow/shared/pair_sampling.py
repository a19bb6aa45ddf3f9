"""Pairs of training rows, similar or not: drawn once, and stored by rows.

A method that learns from pairs would need n² of them. A few hundred partners of each row say nearly
as much: every row draws some among those that are relevant to it, and some among the others. A pair
counts in both directions, whoever drew it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from rankbits.errors import InputError
from rankbits.methods.supervision import Supervision, supervise

_BLOCK_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class RowPairs:
    """Pairs (i, j) of rows.

    Attributes
    ----------
    first, second : ndarray of int64, shape (pairs,)
        i and j.
    """

    first: np.ndarray
    second: np.ndarray

    def differ(self, bits: np.ndarray) -> np.ndarray:
        """Whether one bit of all rows, of any two values, differs between the rows of a pair."""
        differ: np.ndarray = bits[self.first] != bits[self.second]
        return differ

    def count_differing(self, bits: np.ndarray) -> np.ndarray:
        """Hamming distance of each pair of codes (n, b)."""
        distances = np.zeros(len(self.first), np.int64)
        for bit in bits.T:
            distances += self.differ(bit)
        return distances


@dataclass(frozen=True, eq=False)
class Pairs(RowPairs):
    """Pairs in the order of i, each pair in both directions.

    Attributes
    ----------
    is_similar : ndarray of bool, shape (pairs,)
    offsets : ndarray of int64, shape (n + 1,)
        The pairs of row i are offsets[i] to offsets[i + 1] - 1.
    """

    is_similar: np.ndarray
    offsets: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return len(self.offsets) - 1

    def partners(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows that are paired with a row: similar ones, and dissimilar ones."""
        pairs = slice(self.offsets[row], self.offsets[row + 1])
        second, is_similar = self.second[pairs], self.is_similar[pairs]
        return second[is_similar], second[~is_similar]

    def matrix(self, weights: np.ndarray) -> csr_array:
        """A sparse matrix (n, n) with a weight for each pair."""
        shape = (self.n_rows, self.n_rows)
        return csr_array((weights, self.second, self.offsets), shape=shape)


def supervise_pairs(rows: np.ndarray, y: Any) -> Supervision:
    """What y says about the rows; a single row is refused."""
    if len(rows) < 2:
        raise InputError("X must have at least two rows to form pairs, got n_samples = 1")
    return supervise(rows, y)


def draw_pairs(
    supervision: Supervision, n_similar: int, n_dissimilar: int, rng: np.random.Generator
) -> Pairs:
    """Pairs in which every row has drawn so many similar and dissimilar partners, or all it has.

    A pair is similar if either row is relevant to the other at any level above 0.
    """
    n = len(supervision)
    everything, similar, dissimilar = np.arange(n), list[np.ndarray](), list[np.ndarray]()
    step = max(1, _BLOCK_CELLS // n)
    for start in range(0, n, step):
        rows = everything[start : start + step]
        for row, is_similar in zip(rows, _is_similar(supervision, rows, everything), strict=True):
            is_similar[row] = True  # no row is dissimilar to itself, and none is its own partner
            others = np.flatnonzero(is_similar)
            similar.append(_keys(row, _draw(others[others != row], n_similar, rng), n))
            dissimilar.append(_keys(row, _draw(np.flatnonzero(~is_similar), n_dissimilar, rng), n))
    return store_pairs(np.concatenate(similar), np.concatenate(dissimilar), n)


def _is_similar(supervision: Supervision, rows: np.ndarray, everything: np.ndarray) -> np.ndarray:
    is_similar: np.ndarray = supervision.levels(rows, everything) > 0
    if supervision.kind in ("affinity", "ranks"):  # which need not be symmetric
        is_similar = is_similar | (supervision.levels(everything, rows) > 0).T
    return is_similar


def _draw(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= most else rng.choice(rows, most, replace=False, shuffle=False)


def _keys(row: int, partners: np.ndarray, n: int) -> np.ndarray:
    """One number for each pair, whatever its direction."""
    keys: np.ndarray = np.minimum(row, partners) * n + np.maximum(row, partners)
    return keys


def store_pairs(similar: np.ndarray, dissimilar: np.ndarray, n: int) -> Pairs:
    """Pairs from their keys, i n + j for i < j; no pair may be of both kinds."""
    similar, dissimilar = np.unique(similar), np.unique(dissimilar)
    low, high = np.divmod(np.concatenate([similar, dissimilar]), n)
    is_similar = np.arange(len(low)) < len(similar)
    first, second = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((second, first))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=n))])
    return Pairs(first[order], second[order], np.tile(is_similar, 2)[order], offsets)
