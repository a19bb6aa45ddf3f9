"""Results of searches: items of many queries behind one another, and how answers become one.

Everything is ordered by query, then (distance, id). A smaller distance is nearer, whatever was
compared: where scores are better the larger they are, the distance is minus the score.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

NO_ID = -1  # fills the places of a query that has fewer than k items
NO_DISTANCE = np.iinfo(np.int32).max


class Ragged(NamedTuple):
    """Items of query q: ids[offsets[q]:offsets[q + 1]], nearest first.

    Attributes
    ----------
    offsets : ndarray of int64, shape (queries + 1,)
    distances : ndarray of int32, or of float32 where numbers were compared
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


@dataclass(frozen=True, eq=False)
class Matches:
    """Items of each query in order of (distance, id): what every search returns.

    It unpacks as `distances, ids`, and with offsets as `offsets, distances, ids`.

    Attributes
    ----------
    distances : ndarray of int32 for bits, of float32 for weights and after re-ranking
        Smaller is nearer. By weights it is minus the score.
    ids : ndarray of int64, shaped as distances
    offsets : ndarray of int64 or None
        None for tables of shape (queries, k), whose places that are left over hold the largest
        distance (2147483647 or infinity) and -1. Else the items of query q are
        ids[offsets[q]:offsets[q + 1]].
    """

    distances: np.ndarray
    ids: np.ndarray
    offsets: np.ndarray | None = None

    def __iter__(self) -> Iterator[Any]:
        columns = (self.distances, self.ids)
        return iter(columns if self.offsets is None else (self.offsets, *columns))

    def __getitem__(self, column: int) -> np.ndarray:
        """A column of what it unpacks as."""
        values: np.ndarray = [*self][column]
        return values

    @property
    def counts(self) -> np.ndarray:
        """Number of items of each query."""
        return self.ragged().counts

    @property
    def n_places(self) -> int | None:
        """Columns of the tables, None where there are offsets."""
        return self.ids.shape[1] if self.offsets is None else None

    def queries(self) -> np.ndarray:
        """The query of each item, where items stand behind one another."""
        return self.ragged().queries()

    def ragged(self) -> Ragged:
        """Items behind one another, without places that are left over."""
        if self.offsets is None:
            return of_table(self.distances, self.ids)
        return Ragged(self.offsets, self.distances, self.ids)


def matches_of(answer: Ragged, k: int | None = None) -> Matches:
    """An answer as tables with k places, or as it is."""
    if k is None:
        return Matches(answer.distances, answer.ids, answer.offsets)
    return Matches(*table(answer, k))


def together(parts: Sequence[Matches]) -> Matches:
    """The matches of consecutive groups of queries, all in tables or none, as one."""
    if parts[0].offsets is not None:
        return matches_of(stacked([part.ragged() for part in parts]))
    distances, ids = zip(*parts, strict=True)
    return Matches(np.concatenate(distances), np.concatenate(ids))


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
    everything = Ragged(_offsets(counts), distances[order], ids[order])
    return everything if k is None else cut(everything, k, is_complete)


def stacked(parts: Sequence[Ragged]) -> Ragged:
    """The answers to consecutive groups of queries as one."""
    return Ragged(
        _offsets(np.concatenate([part.counts for part in parts])),
        np.concatenate([part.distances for part in parts]),
        np.concatenate([part.ids for part in parts]),
    )


def gathered(parts: Sequence[tuple[np.ndarray, Ragged]], n_queries: int) -> Ragged:
    """The answers to some of the queries each as one; the last answer to a query counts."""
    counts = np.zeros(n_queries, np.int64)
    for queries, answer in parts:
        counts[queries] = answer.counts
    offsets = _offsets(counts)
    distances, ids = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int64)
    for queries, answer in parts:
        places = np.repeat(offsets[queries] - answer.offsets[:-1], answer.counts)
        places += np.arange(len(answer.ids))
        distances[places], ids[places] = answer.distances, answer.ids
    return Ragged(offsets, distances, ids)


def unique(answer: Ragged) -> Ragged:
    """Each item once, at its smallest distance; in order of (distance, id) as before."""
    queries = answer.queries()
    first = np.lexsort((answer.distances, answer.ids, queries))
    is_new = np.ones(len(first), bool)
    is_new[1:] = (np.diff(queries[first]) != 0) | (np.diff(answer.ids[first]) != 0)
    is_chosen = np.zeros(len(first), bool)
    is_chosen[first[is_new]] = True
    return _chosen(answer, is_chosen)


def cut(answer: Ragged, k: int, is_complete: bool) -> Ragged:
    """The k nearest of each query, with all ties of the k-th if complete."""
    place = np.arange(len(answer.ids)) - np.repeat(answer.offsets[:-1], answer.counts)
    is_chosen = place < k
    if is_complete and len(answer.ids):
        last = answer.offsets[:-1] + np.minimum(k, answer.counts) - 1
        kth = answer.distances[np.maximum(last, 0)]
        is_chosen |= answer.distances <= np.repeat(kth, answer.counts)
    return _chosen(answer, is_chosen)


def _chosen(answer: Ragged, is_chosen: np.ndarray) -> Ragged:
    counts = np.bincount(answer.queries()[is_chosen], minlength=len(answer.offsets) - 1)
    return Ragged(_offsets(counts), answer.distances[is_chosen], answer.ids[is_chosen])


def _offsets(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def of_table(distances: np.ndarray, ids: np.ndarray) -> Ragged:
    """A table of results without the places that are left over."""
    is_there = ids >= 0
    if is_there.all():
        offsets = np.arange(len(ids) + 1) * ids.shape[1]
        return Ragged(offsets, distances.ravel(), ids.ravel())
    return Ragged(_offsets(is_there.sum(axis=1)), distances[is_there], ids[is_there])


def table(answer: Ragged, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances and ids as (queries, k) arrays; places left over hold the largest and -1."""
    n_queries = len(answer.offsets) - 1
    if len(answer.ids) == n_queries * k:
        return answer.distances.reshape(n_queries, k), answer.ids.reshape(n_queries, k)
    is_float = answer.distances.dtype.kind == "f"
    farthest = np.inf if is_float else NO_DISTANCE
    distances = np.full((n_queries, k), farthest, answer.distances.dtype)
    ids = np.full((n_queries, k), NO_ID, np.int64)
    is_there = np.arange(k) < answer.counts[:, None]
    distances[is_there], ids[is_there] = answer.distances, answer.ids
    return distances, ids
