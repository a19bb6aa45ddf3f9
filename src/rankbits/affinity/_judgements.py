"""Sparse judgements: (query, item, level) triples, everything unjudged irrelevant."""

from typing import Any, Literal

import numpy as np

from rankbits import _check
from rankbits.affinity._base import Affinity, levels_with_zero
from rankbits.errors import InputError

_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


class Judgements(Affinity):
    """Judged pairs, sorted by query and item. Build it with `rankbits.affinity.judgements`.

    Parameters
    ----------
    rows : ndarray of int64, shape (n, 3)
        The judged pairs as (query, item, level), sorted by query and then by item. Queries and
        items are row numbers from 0, and no pair occurs twice.
    shape : tuple of two int
        The number of queries and the number of items.
    """

    def __init__(self, rows: np.ndarray, shape: tuple[int, int]) -> None:
        self.queries, self.items, values = rows.T
        self.levels = levels_with_zero("levels of rows", values)
        self.positions = np.searchsorted(self.levels, values)
        self.shape = shape

    @property
    def rows(self) -> np.ndarray:
        """The judged pairs as int64 rows (query, item, level), sorted by query and item."""
        return np.column_stack([self.queries, self.items, self.levels[self.positions]])

    def indices(self, queries: slice, items: slice) -> np.ndarray:
        first, last, _ = queries.indices(self.shape[0])
        left, right, _ = items.indices(self.shape[1])
        block = np.zeros((max(last - first, 0), max(right - left, 0)), self.index_dtype)
        inside = slice(*np.searchsorted(self.queries, (first, last)))
        rows, columns = self.queries[inside], self.items[inside]
        is_here = (columns >= left) & (columns < right)
        block[rows[is_here] - first, columns[is_here] - left] = self.positions[inside][is_here]
        return block

    def block(self, query_rows: np.ndarray, item_rows: np.ndarray) -> np.ndarray:
        names, columns = np.unique(item_rows, return_inverse=True)
        block = np.zeros((len(query_rows), max(len(names), 1)), self.index_dtype)
        first, last = (np.searchsorted(self.queries, query_rows, side) for side in _SIDES)
        n_judged = last - first
        rows = np.repeat(np.arange(len(query_rows)), n_judged)
        starts = np.repeat(first - (np.cumsum(n_judged) - n_judged), n_judged)
        judged = starts + np.arange(len(rows))
        spots = np.searchsorted(names, self.items[judged])
        is_here = np.append(names, -1)[spots] == self.items[judged]
        block[rows[is_here], spots[is_here]] = self.positions[judged[is_here]]
        return block[:, columns]

    def pairs(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        judged = self.queries * self.shape[1] + self.items  # ascending, since rows are sorted
        sought = np.asarray(queries, np.int64) * self.shape[1] + items
        spots = np.searchsorted(judged, sought)
        is_judged = (np.append(judged, -1)[spots] == sought) & (items >= 0)
        return np.where(is_judged, np.append(self.positions, 0)[spots], 0)


def judgements(rows: Any, n_queries: int, n_database: int) -> Judgements:
    """Affinity from (query, item, level) triples, as in a qrels file; all other pairs are 0.

    Parameters
    ----------
    rows : integers of shape (n, 3): query from 0, item from 0, level >= 0; no pair twice
    n_queries, n_database : int

    >>> judgements([(0, 2, 1), (1, 0, 3)], 2, 3).indices(slice(None), slice(None)).tolist()
    [[0, 0, 1], [2, 0, 0]]
    """
    shape = (_check.whole("n_queries", n_queries, 1), _check.whole("n_database", n_database, 1))
    triples = _check.array("rows", rows)
    if triples.ndim != 2 or triples.shape[1] != 3 or triples.dtype.kind not in "iu":
        raise InputError(
            "rows must be integers of shape (n, 3): query, item, level; "
            f"got {_check.describe(triples)}"
        )
    triples = triples.astype(np.int64)
    for column, (name, size) in enumerate(zip(("a query", "an item"), shape, strict=True)):
        outside = (triples[:, column] < 0) | (triples[:, column] >= size)
        if outside.any():
            raise InputError(
                f"rows must name {name} from 0 to {size - 1}, got {triples[outside][0, column]}; "
                "numbers start at 0"
            )
    triples = triples[np.lexsort((triples[:, 1], triples[:, 0]))]
    twice = (np.diff(triples[:, :2], axis=0) == 0).all(axis=1)
    if twice.any():
        query, item = triples[:-1][twice][0, :2]
        raise InputError(f"rows must judge a pair once, query {query} and item {item} come twice")
    return Judgements(triples, shape)
