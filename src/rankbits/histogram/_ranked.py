"""Rankings by real numbers as tie histograms.

Any ranking is a sequence of ties, nearest first, and every metric is a function of how many items
of each level each tie holds. Ties with nothing relevant matter by their size alone, so the relevant
items of a query are the marks between which all others are counted: no sort of the database, and no
table of its scores. Equation (ranked) of docs/math.md.

Notation:
    mark    a distance at which a query has a relevant item     T  ties of a ranking
    V       levels of the affinity                              depth  the deepest rank that matters
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rankbits import _native
from rankbits.affinity import Affinity
from rankbits.errors import InputError
from rankbits.histogram._count import require_shape
from rankbits.histogram._distances import DistanceSource, ItemBlock
from rankbits.histogram._own_items import own_items
from rankbits.histogram._rankings import stack_ties
from rankbits.histogram._relevant import (
    RelevantPairs,
    count_relevant,
    mask_relevant,
    order_queries,
    relevant_pairs,
)
from rankbits.histogram._table import TieHistogram

Progress = Callable[[int, int], None]

_QUERIES = 256
_RELEVANT = 1 << 21  # pairs held at once, at some 18 bytes each
_CELLS = 1 << 20  # distances of a block
_QUICK_CELLS = 1 << 22  # the same of numbers in single precision, where few queries have marks
_QUICK_MARKS = 256  # of a query, up to which single precision leaves few pairs open
_MOST_OPEN = 0.06  # share of the pairs of a block, beyond which double precision is faster
_MARK_ITEMS = 1 << 15
_TABLE_CELLS = 1 << 18  # counts of the histograms that are handed on together


class RankedQueries(NamedTuple):
    """The tie histogram of some queries, in which a bucket is a tie instead of a distance.

    Attributes
    ----------
    queries : ndarray of int
        Numbers of the queries, from 0.
    histogram : TieHistogram
        Their ties, nearest first.
    """

    queries: np.ndarray
    histogram: TieHistogram


def count_ranked(
    source: DistanceSource,
    affinity: Affinity,
    exclude_self: bool | np.ndarray = False,
    *,
    depth: int | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Iterator[RankedQueries]:
    """Count the ties of each query's ranking by a real-valued distance.

    Parameters
    ----------
    source : DistanceSource
        What ranks the items: `CodeDistances` or `VectorDistances`.
    affinity : Affinity
        From `rankbits.affinity`, over these queries and items.
    exclude_self : bool or ndarray of int, shape (queries,), default=False
        As in `count_ties`.
    depth : int or None, default=None
        The deepest rank that matters: ties beyond it come as one. None counts all.
    n_threads : int or None, default=None
        Number of threads; None takes all that this process may use.
    progress : callable or None, default=None
        Called as progress(done, total) with numbers of query-item pairs.

    Returns
    -------
    iterator of RankedQueries
        Some queries and their histogram, until each has come once. Neighboring ties whose items
        are all of the same level come as one, since no order of them can be told from another.
    """
    n_queries, n_items = source.shape
    require_shape(affinity, n_queries, n_items, source.what)
    if n_items >= 1 << 32:
        raise InputError(f"the database must have fewer than 2^32 items, got {n_items}")
    own = own_items(exclude_self, n_queries, n_items)
    threads = _native.threads(n_threads)
    own = np.full(n_queries, -1) if own is None else own
    n_relevant = count_relevant(affinity)[:, 1:].sum(axis=1)
    n_relevant -= affinity.pairs(np.arange(n_queries), own) > 0
    order, n_done = order_queries(affinity), 0
    for place in _batches(n_relevant[order]):
        queries = order[place]
        batch = _Batch(source, affinity, queries, own[queries], n_relevant[queries], threads)
        for n_items_done in batch.count():
            if progress is not None:
                progress(n_done * n_items + len(queries) * n_items_done, n_queries * n_items)
        n_done += len(queries)
        yield from batch.histograms(depth)


def _batches(n_relevant: np.ndarray) -> Iterator[slice]:
    """Runs of queries whose relevant pairs can be held at once, or one query each."""
    start = 0
    while start < len(n_relevant):
        held = np.cumsum(n_relevant[start : start + _QUERIES])
        size = max(1, int(np.searchsorted(held, _RELEVANT, side="right")))
        yield slice(start, start + size)
        start += size


class _Batch:
    """Queries that are counted together, in two passes: their marks, then all items."""

    def __init__(
        self,
        source: DistanceSource,
        affinity: Affinity,
        queries: np.ndarray,
        own: np.ndarray,
        n_relevant: np.ndarray,
        n_threads: int,
    ) -> None:
        self._source, self._affinity, self._queries = source, affinity, queries
        self._n_queries = len(queries)
        self._own, self._n_threads = own, n_threads
        self._starts = np.concatenate([[0], np.cumsum(n_relevant)])
        self._is_quick = bool(n_relevant.max(initial=0) <= _QUICK_MARKS)

    def count(self) -> Iterator[int]:
        """Both passes; yields the number of items that the second has done."""
        self._find_marks()
        self._counts = np.zeros((2, len(self._marks)), np.uint32)
        ties = _native.RankedTies(self._marks, self._starts, self._counts)
        for items in self._blocks(self._source.most_items):
            self._add_block(ties, items)
            yield items.stop

    def histograms(self, depth: int | None) -> Iterator[RankedQueries]:
        """The histograms, some queries at a time."""
        tables: list[np.ndarray] = []
        for q in range(self._n_queries):
            table = self._table(q, depth)
            largest = max(other.size for other in [*tables, table])
            if tables and (len(tables) + 1) * largest > _TABLE_CELLS:
                yield self._hand_on(q, tables)
                tables = []
            tables.append(table)
        yield self._hand_on(self._n_queries, tables)

    def _hand_on(self, stop: int, tables: list[np.ndarray]) -> RankedQueries:
        histogram = stack_ties(tables, self._affinity.levels)
        return RankedQueries(self._queries[stop - len(tables) : stop], histogram)

    def _blocks(self, most_items: int) -> Iterator[slice]:
        n_items = self._source.shape[1]
        cells = _QUICK_CELLS if self._is_quick else _CELLS
        step = min(most_items, max(1, cells // self._n_queries))
        for start in range(0, n_items, step):
            yield slice(start, min(start + step, n_items))

    def _find_marks(self) -> None:
        """The distances of the relevant items of each query, ascending, and their levels."""
        n_marks = self._starts[-1]
        self._marks, self._positions = (
            np.empty(n_marks),
            np.empty(n_marks, self._affinity.index_dtype),
        )
        ends = self._starts[:-1].copy()
        for items in self._blocks(_MARK_ITEMS):
            pairs = self._relevant(items)
            if pairs.queries.size:
                block = self._source.open_block(items, self._n_threads)
                distances = self._exact(block, pairs.queries, pairs.items)
                stops = np.searchsorted(pairs.queries, np.arange(1, self._n_queries + 1))
                for q, (start, stop) in enumerate(pairwise([0, *stops])):
                    places = slice(ends[q], ends[q] + stop - start)
                    self._marks[places] = distances[start:stop]
                    self._positions[places] = pairs.positions[start:stop]
                    ends[q] = places.stop
        for start, stop in pairwise(self._starts):
            self._sort_marks(slice(start, stop))

    def _sort_marks(self, own: slice) -> None:
        if len(self._affinity.levels) == 2:  # of which one is relevant
            self._marks[own].sort()
            return
        order = np.argsort(self._marks[own])
        self._marks[own] = self._marks[own][order]
        self._positions[own] = self._positions[own][order]

    def _relevant(self, items: slice) -> RelevantPairs:
        pairs = relevant_pairs(self._affinity, self._queries, items)
        if not self._owners(items).size:
            return pairs
        is_other = self._own[pairs.queries] != pairs.items + items.start
        return RelevantPairs(*(column[is_other] for column in pairs))

    def _owners(self, items: slice) -> np.ndarray:
        """Places of the queries that are one of these items themselves."""
        return np.flatnonzero((self._own >= items.start) & (self._own < items.stop))

    def _exact(self, block: ItemBlock, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if queries.size == 0:
            return np.empty(0)
        return block.exact(self._queries[queries], rows)

    def _add_block(self, ties: "_native.RankedTies", items: slice) -> None:
        """Count the irrelevant items of a block; open pairs by their exact distances."""
        block = self._source.open_block(items, self._n_threads)
        distances, slack = block.rough(self._queries, is_quick=self._is_quick)
        is_left_out = mask_relevant(self._affinity, self._queries, items)  # their places are known
        owners = self._owners(items)
        is_left_out[owners, self._own[owners] - items.start] = True
        is_open = np.empty(distances.shape, np.bool_)
        n_open = ties.add_block(
            distances, slack, is_left_out.view(np.uint8), is_open.view(np.uint8), self._n_threads
        )
        self._is_quick = self._is_quick and n_open <= _MOST_OPEN * is_open.size
        if n_open:
            queries, rows = np.nonzero(is_open)
            ties.add_pairs(queries, self._exact(block, queries, rows))

    def _table(self, q: int, depth: int | None) -> np.ndarray:
        """Counts (V, T) of one query's ranking."""
        own = slice(self._starts[q], self._starts[q + 1])
        n_others = self._source.shape[1] - int(self._own[q] >= 0)
        counts = np.zeros((2 * (own.stop - own.start) + 1, len(self._affinity.levels)), np.int64)
        n_ties = _native.tabulate_ties(
            self._marks[own],
            self._positions[own],
            np.ascontiguousarray(self._counts[:, own]),
            n_others,
            n_others if depth is None else depth,
            counts,
        )
        return counts[:n_ties].T
