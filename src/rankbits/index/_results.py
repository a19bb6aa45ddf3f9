"""What searches find: rows of many queries behind one another, and how parts become one answer.

Everything is ordered by query, then (distance, id).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

NO_ID = -1  # fills the places of a query that has fewer than k items
NO_DISTANCE = np.iinfo(np.int32).max


class Ragged(NamedTuple):
    """Items of query q: ids[offsets[q]:offsets[q + 1]], nearest first.

    Attributes
    ----------
    offsets : ndarray of int64, shape (queries + 1,)
    distances : ndarray of int32
    ids : ndarray of int64
    """

    offsets: np.ndarray
    distances: np.ndarray
    ids: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Number of items of each query."""
        return np.diff(self.offsets)

    def queries(self) -> np.ndarray:
        """The query of each item."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.counts)


def nothing(n_queries: int) -> Ragged:
    """No items for any query."""
    return Ragged(np.zeros(n_queries + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))


def combined(
    parts: Sequence[Ragged], n_queries: int, k: int | None, *, is_complete: bool = False
) -> Ragged:
    """The answers of disjoint parts as one: the k nearest, with all ties of the k-th if complete.

    >>> near = Ragged(np.array([0, 2]), np.array([0, 3]), np.array([5, 1]))
    >>> far = Ragged(np.array([0, 1]), np.array([3]), np.array([0]))
    >>> combined([near, far], 1, 2).ids.tolist()
    [5, 0]
    """
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return nothing(n_queries)
    queries = np.concatenate([part.queries() for part in parts])
    distances = np.concatenate([part.distances for part in parts])
    ids = np.concatenate([part.ids for part in parts])
    order = np.lexsort((ids, distances, queries))
    counts = np.sum([part.counts for part in parts], axis=0)
    whole = Ragged(_offsets(counts), distances[order], ids[order])
    return whole if k is None else cut(whole, k, is_complete)


def unique(found: Ragged) -> Ragged:
    """Each item once, at its smallest distance; in order of (distance, id) as before."""
    queries = found.queries()
    first = np.lexsort((found.distances, found.ids, queries))
    is_new = np.ones(len(first), bool)
    is_new[1:] = (np.diff(queries[first]) != 0) | (np.diff(found.ids[first]) != 0)
    kept = np.zeros(len(first), bool)
    kept[first[is_new]] = True
    return _kept(found, kept)


def cut(found: Ragged, k: int, is_complete: bool) -> Ragged:
    place = np.arange(len(found.ids)) - np.repeat(found.offsets[:-1], found.counts)
    kept = place < k
    if is_complete and len(found.ids):
        last = found.offsets[:-1] + np.minimum(k, found.counts) - 1
        kth = found.distances[np.maximum(last, 0)]
        kept |= found.distances <= np.repeat(kth, found.counts)
    return _kept(found, kept)


def _kept(found: Ragged, kept: np.ndarray) -> Ragged:
    counts = np.bincount(found.queries()[kept], minlength=len(found.offsets) - 1)
    return Ragged(_offsets(counts), found.distances[kept], found.ids[kept])


def _offsets(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def table(found: Ragged, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances and ids as (queries, k) arrays; places left over hold NO_DISTANCE and -1."""
    n_queries = len(found.offsets) - 1
    if len(found.ids) == n_queries * k:
        return found.distances.reshape(n_queries, k), found.ids.reshape(n_queries, k)
    distances = np.full((n_queries, k), NO_DISTANCE, np.int32)
    ids = np.full((n_queries, k), NO_ID, np.int64)
    is_there = np.arange(k) < found.counts[:, None]
    distances[is_there], ids[is_there] = found.distances, found.ids
    return distances, ids
