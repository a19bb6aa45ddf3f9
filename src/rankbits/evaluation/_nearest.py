"""The nearest vectors themselves: the reference ranking that codes are compared with."""

from typing import Any

import numpy as np

from rankbits import _check
from rankbits._mapped import reads_unchanged
from rankbits.evaluation._reference import NO_ITEM
from rankbits.histogram import VectorDistances, own_items

_CELLS = 1 << 20  # distances of a block
_QUERIES = 256


@reads_unchanged
def nearest_vectors(
    queries: Any,
    database: Any,
    k: int,
    metric: str = "cosine",
    *,
    exclude_self: bool | np.ndarray = False,
    n_threads: int | None = None,
) -> np.ndarray:
    """The ids of the k nearest vectors of each query, in order of (distance, id), exactly.

    Parameters
    ----------
    queries, database : array-like of shape (n, d)
        As in `evaluate_vectors`.
    k : int
        Number of items, at least 1.
    metric : {"cosine", "ip", "l2"}, default="cosine"
        As in `evaluate_vectors`.
    exclude_self : bool or ndarray of int, shape (queries,), default=False
        As in `rankbits.count_ties`.
    n_threads : int or None, default=None
        Number of threads; None takes all that this process may use.

    Returns
    -------
    ids : ndarray of int64, shape (queries, k)
        Nearest first; -1 where the database has fewer than k items.

    >>> nearest_vectors([[1.0, 0.0]], [[0.0, 1.0], [2.0, 0.1], [1.0, 1.0]], k=2).tolist()
    [[1, 2]]
    """
    source = VectorDistances(queries, database, metric)
    n_queries, n_items = source.shape
    k = _check.whole("k", k, 1)
    own = own_items(exclude_self, n_queries, n_items)
    ids = np.full((n_queries, k), NO_ITEM)
    for start in range(0, n_queries, _QUERIES):
        rows = slice(start, min(start + _QUERIES, n_queries))
        ids[rows] = _nearest(source, rows, k, None if own is None else own[rows], n_threads)
    return ids


def _nearest(
    source: VectorDistances, queries: slice, k: int, own: np.ndarray | None, n_threads: int | None
) -> np.ndarray:
    """One pass over the items; only those that may be among the k nearest get exact distances."""
    n_queries, n_items = queries.stop - queries.start, source.shape[1]
    best = _Best(n_queries, k)
    step = min(source.most_items, max(1, _CELLS // n_queries))
    for start in range(0, n_items, step):
        items = slice(start, min(start + step, n_items))
        block = source.open_block(items, n_threads)
        rough, slack = block.rough(queries, is_quick=True)
        if own is not None:
            rough[np.arange(items.start, items.stop) == own[:, None]] = np.inf
        farthest = best.farthest
        if start == 0 and k <= rough.shape[1]:  # the first block says how far k items are at most
            farthest = np.partition(rough, k - 1, axis=1)[:, k - 1] + slack
        may_be_near = ~(rough > (farthest + slack)[:, None])  # also where it is NaN
        rows, columns = np.nonzero(may_be_near & ~np.isposinf(rough))
        if rows.size:
            distances = block.exact(rows + queries.start, columns)
            best.offer(rows, distances, columns + items.start)
    return best.ids()


class _Best:
    """The k nearest items so far of some queries."""

    def __init__(self, n_queries: int, k: int) -> None:
        self._k = k
        self._rows, self._ids = np.empty((2, 0), np.int64)
        self._distances = np.empty(0)
        self.farthest = np.full(n_queries, np.inf)  # the k-th distance

    def offer(self, rows: np.ndarray, distances: np.ndarray, ids: np.ndarray) -> None:
        rows = np.concatenate([self._rows, rows])
        distances = np.concatenate([self._distances, distances])
        ids = np.concatenate([self._ids, ids])
        order = np.lexsort((ids, distances, rows))
        place = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
        order = order[place < self._k]
        self._rows, self._distances, self._ids = rows[order], distances[order], ids[order]
        is_last = place[place < self._k] == self._k - 1
        self.farthest[self._rows[is_last]] = self._distances[is_last]

    def ids(self) -> np.ndarray:
        ids = np.full((len(self.farthest), self._k), NO_ITEM)
        place = np.arange(len(self._rows)) - np.searchsorted(self._rows, self._rows)
        ids[self._rows, place] = self._ids
        return ids
