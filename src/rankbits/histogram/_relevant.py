"""The relevant items of each query, found block by block."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rankbits.affinity import Affinity, Classes, Judgements

_CELLS = 1 << 20  # pairs looked at together


class RelevantPairs(NamedTuple):
    """Pairs of a query and an item that is relevant to it, sorted by query."""

    queries: np.ndarray  # int64, places in the array of queries
    items: np.ndarray  # int64, from 0 in the slice of items
    positions: np.ndarray  # in the levels of the affinity, above 0


def order_queries(affinity: Affinity) -> np.ndarray:
    """All queries, those that share relevant items side by side.

    Whoever takes them in this order reads an item once for all queries of its class.

    Parameters
    ----------
    affinity : Affinity
    """
    if isinstance(affinity, Classes):
        return np.argsort(affinity.query_ids, kind="stable")
    return np.arange(affinity.shape[0])


def relevant_pairs(affinity: Affinity, queries: np.ndarray, items: slice) -> RelevantPairs:
    """The relevant pairs of some queries and some items.

    Parameters
    ----------
    affinity : Affinity
    queries : ndarray of int
        A run of `order_queries`.
    items : slice
        With a start and a stop.
    """
    if isinstance(affinity, Judgements):
        return _judged_pairs(affinity, _slice_of(queries), items)
    if isinstance(affinity, Classes):
        return _class_pairs(affinity, queries, items)
    positions = affinity.indices(_slice_of(queries), items)
    flat = np.flatnonzero(positions != 0)  # of bools, which is several times as fast
    rows, columns = np.divmod(flat, positions.shape[1])
    return RelevantPairs(rows, columns, positions.ravel()[flat])


def mask_relevant(affinity: Affinity, queries: np.ndarray, items: slice) -> np.ndarray:
    """Whether an item is relevant to a query: bool of shape (queries, items).

    Parameters
    ----------
    affinity : Affinity
    queries : ndarray of int
        A run of `order_queries`.
    items : slice
        With a start and a stop.
    """
    is_relevant: np.ndarray
    if isinstance(affinity, Judgements):
        is_relevant = np.zeros((len(queries), items.stop - items.start), np.bool_)
        pairs = _judged_pairs(affinity, _slice_of(queries), items)
        is_relevant[pairs.queries, pairs.items] = True
    elif isinstance(affinity, Classes):
        is_relevant = affinity.query_ids[queries, None] == affinity.database_ids(items)
    else:
        is_relevant = affinity.indices(_slice_of(queries), items) != 0
    return is_relevant


def count_relevant(affinity: Affinity) -> np.ndarray:
    """How many items of each level every query has: int64 of shape (queries, V).

    Parameters
    ----------
    affinity : Affinity
    """
    n_queries, n_items = affinity.shape
    if isinstance(affinity, Judgements):
        counts = _count_positions(affinity, affinity.queries, affinity.positions)
        counts[:, 0] = n_items - counts[:, 1:].sum(axis=1)
        return counts
    if isinstance(affinity, Classes):
        ids = [affinity.database_ids(items) for items in _slices(n_items, _CELLS)]
        of_class = sum(np.bincount(part + 1, minlength=len(affinity.names) + 1) for part in ids)
        n_same = np.asarray(of_class)[affinity.query_ids + 1]
        return np.stack([n_items - n_same, n_same], axis=1)
    counts = np.zeros((n_queries, len(affinity.levels)), np.int64)
    for items in _slices(n_items, max(1, _CELLS // n_queries)):
        for rows in _slices(n_queries, _CELLS):
            positions = affinity.indices(rows, items)
            query = np.repeat(np.arange(rows.start, rows.stop), positions.shape[1])
            counts += _count_positions(affinity, query, positions.ravel())
    return counts


def _count_positions(affinity: Affinity, queries: np.ndarray, positions: np.ndarray) -> np.ndarray:
    n_queries, n_levels = affinity.shape[0], len(affinity.levels)
    cells = queries * n_levels + positions
    return np.bincount(cells, minlength=n_queries * n_levels).reshape(n_queries, n_levels)


def _slice_of(queries: np.ndarray) -> slice:
    """Of consecutive queries."""
    return slice(int(queries[0]), int(queries[-1]) + 1)


def _class_pairs(affinity: Classes, queries: np.ndarray, items: slice) -> RelevantPairs:
    classes, item_classes = affinity.query_ids[queries], affinity.database_ids(items)
    members = {own: np.flatnonzero(item_classes == own) for own in np.unique(classes)}
    rows = [members[own] for own in classes]
    places = np.repeat(np.arange(len(queries)), [len(own) for own in rows])
    columns = np.concatenate(rows)
    return RelevantPairs(places, columns, np.ones(len(columns), np.uint8))


def _judged_pairs(affinity: Judgements, queries: slice, items: slice) -> RelevantPairs:
    inside = slice(*np.searchsorted(affinity.queries, (queries.start, queries.stop)))
    rows, columns = affinity.queries[inside], affinity.items[inside]
    positions = affinity.positions[inside]
    is_here = (columns >= items.start) & (columns < items.stop) & (positions > 0)
    return RelevantPairs(
        rows[is_here] - queries.start, columns[is_here] - items.start, positions[is_here]
    )


def _slices(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))
