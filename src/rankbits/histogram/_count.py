"""Counting ties: pairs of codes, with their affinity, into a histogram.

The database goes by in blocks, so that extra memory does not grow with it; a memory-mapped one is
read once. Each kind of affinity has the kernel that suits it:

    classes      every item by distance, the query's own class apart
    judgements   every item by distance, then the judged pairs moved to their level
    tags         tag sets as bit rows over the block; a query combines the rows of its own tags
    others       the level of every pair of a block, written out
"""

from collections.abc import Callable, Iterator

import numpy as np

from rankbits import _check, _native
from rankbits._mapped import reads_unchanged
from rankbits.affinity import Affinity, Classes, Judgements, Tags
from rankbits.codes import BinaryCodes, require_same_bits, require_unchanged
from rankbits.errors import InputError
from rankbits.histogram._own_items import own_items
from rankbits.histogram._table import TieHistogram

Progress = Callable[[int, int], None]

_ITEMS = 1 << 18  # a block: its class numbers and its table of distinct codes take some 4 MB
_TAG_CELLS = 1 << 22
_PAIR_BYTES = 1 << 20
_LEVEL_QUERIES, _LEVEL_ITEMS = 64, 1 << 13


@reads_unchanged
def count_ties(
    queries: BinaryCodes,
    database: BinaryCodes,
    affinity: Affinity,
    exclude_self: bool | np.ndarray = False,
    *,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> TieHistogram:
    """Count the database by distance and affinity, for each query.

    Parameters
    ----------
    queries, database : BinaryCodes of one length
    affinity : from `rankbits.affinity`, over these queries and items
    exclude_self : bool or integers of shape (queries,)
        True: query i is item i and does not count. An array names each query's own item, -1 for
        none; so one shard of a database can leave out just what it holds.
    n_threads : int, default all that this process may use
    progress : called with (pairs done, pairs in all) after each block

    >>> codes = BinaryCodes.from_bits([[0, 0], [0, 1], [1, 1]])
    >>> from rankbits.affinity import classes
    >>> count_ties(codes[:1], codes, classes([7], [7, 7, 8])).counts.tolist()
    [[[0, 1], [0, 1], [1, 0]]]
    """
    require_same_bits(queries, database)
    require_shape(affinity, len(queries), len(database))
    own = own_items(exclude_self, len(queries), len(database))
    n_threads = _native.threads(n_threads)
    shape = (len(queries), queries.n_bits + 1, len(affinity.levels))
    counts = np.zeros(shape, np.int64)
    for done in _blocks(queries, database, affinity, counts, n_threads):
        if progress is not None:
            progress(done, len(queries) * len(database))
    _require_all_counted(queries, len(database), counts)
    _leave_out(own, queries, database, affinity, counts)
    return TieHistogram(counts, affinity.levels)


def _blocks(
    queries: BinaryCodes,
    database: BinaryCodes,
    affinity: Affinity,
    counts: np.ndarray,
    n_threads: int,
) -> Iterator[int]:
    """Count by the loop for this kind of affinity; it yields the pairs done so far."""
    if isinstance(affinity, Classes):
        return _classes(queries, database, affinity, counts, n_threads)
    if isinstance(affinity, Judgements):
        return _judgements(queries, database, affinity, counts, n_threads)
    if isinstance(affinity, Tags):
        return _tags(queries, database, affinity, counts, n_threads)
    return _levels(queries, database, affinity, counts, n_threads)


def _classes(
    queries: BinaryCodes,
    database: BinaryCodes,
    affinity: Classes,
    counts: np.ndarray,
    n_threads: int,
) -> Iterator[int]:
    for items in _slices(len(database), _ITEMS):
        block, ids = database.packed[items], affinity.database_ids(items)
        _native.count_classes(
            queries.packed, block, affinity.query_ids, ids, counts, n_threads=n_threads
        )
        yield len(queries) * items.stop


def _judgements(
    queries: BinaryCodes,
    database: BinaryCodes,
    affinity: Judgements,
    counts: np.ndarray,
    n_threads: int,
) -> Iterator[int]:
    nobody = np.full(len(queries), -2, np.int32)  # of no item's class: all items fall on level 0
    for items in _slices(len(database), _ITEMS):
        block = database.packed[items]
        ids = np.full(len(block), -1, np.int32)
        _native.count_classes(queries.packed, block, nobody, ids, counts, n_threads=n_threads)
        yield len(queries) * items.stop
    for rows in _slices(len(affinity.queries), _ITEMS):
        query_rows, item_rows = affinity.queries[rows], affinity.items[rows]
        distance = _pair_distances(queries, query_rows, database, item_rows)
        np.subtract.at(counts[:, :, 0], (query_rows, distance), 1)
        np.add.at(counts, (query_rows, distance, affinity.positions[rows]), 1)


def _tags(
    queries: BinaryCodes,
    database: BinaryCodes,
    affinity: Tags,
    counts: np.ndarray,
    n_threads: int,
) -> Iterator[int]:
    query_rows, tag_columns = np.nonzero(affinity.query_tags)
    starts = np.searchsorted(query_rows, np.arange(len(queries) + 1)).astype(np.int64)
    tag_columns = tag_columns.astype(np.int32)
    size = max(1 << 8, _TAG_CELLS // affinity.query_tags.shape[1])
    for items in _slices(len(database), size):
        _native.count_tags(
            queries.packed,
            database.packed[items],
            starts,
            tag_columns,
            affinity.database_rows(items),
            counts,
            n_threads=n_threads,
        )
        yield len(queries) * items.stop


def _levels(
    queries: BinaryCodes,
    database: BinaryCodes,
    affinity: Affinity,
    counts: np.ndarray,
    n_threads: int,
) -> Iterator[int]:
    for items in _slices(len(database), _LEVEL_ITEMS):
        block = database.packed[items]
        for rows in _slices(len(queries), _LEVEL_QUERIES):
            level_indices = affinity.indices(rows, items)
            _native.count_levels(
                queries.packed[rows], block, level_indices, counts[rows], n_threads=n_threads
            )
        yield len(queries) * items.stop


def _require_all_counted(queries: BinaryCodes, n_items: int, counts: np.ndarray) -> None:
    """Each query met each item at a distance that its code length allows."""
    totals = counts.sum(axis=(1, 2))
    wrong = np.flatnonzero(totals != n_items)
    if wrong.size:
        query = int(wrong[0])
        evidence = f"query {query} met {totals[query]} of {n_items} items"
        require_unchanged(False, evidence, queries)


def _leave_out(
    own: np.ndarray | None,
    queries: BinaryCodes,
    database: BinaryCodes,
    affinity: Affinity,
    counts: np.ndarray,
) -> None:
    """Take each query's own item out of the counts again."""
    if own is None:
        return
    query_rows = np.flatnonzero(own >= 0)
    item_rows = own[query_rows]
    distance = _pair_distances(queries, query_rows, database, item_rows)
    counts[query_rows, distance, affinity.pairs(query_rows, item_rows)] -= 1


def _pair_distances(
    queries: BinaryCodes, query_rows: np.ndarray, database: BinaryCodes, item_rows: np.ndarray
) -> np.ndarray:
    """Distances of single pairs (query_rows[j], item_rows[j])."""
    distance = np.empty(len(query_rows), np.int64)
    for rows in _slices(len(query_rows), max(1, _PAIR_BYTES // queries.packed.shape[1])):
        different = queries.packed[query_rows[rows]] ^ database.packed[item_rows[rows]]
        np.bitwise_count(different).sum(axis=1, out=distance[rows])
    longest = int(distance.max(initial=0))
    require_unchanged(longest <= queries.n_bits, f"a distance is {longest}", queries)
    return distance


def require_shape(affinity: Affinity, n_queries: int, n_items: int, what: str = "codes") -> None:
    """Refuse what is no affinity, or one of other queries and items than are ranked.

    Parameters
    ----------
    affinity : Affinity
    n_queries, n_items : int
        The numbers of queries and of items that are ranked.
    what : str, default="codes"
        What is ranked, for the error message.
    """
    if not isinstance(affinity, Affinity):
        raise InputError(
            f"affinity must come from rankbits.affinity, got {_check.describe(affinity)}; "
            "for a (queries, items) array of levels call affinity.levels(matrix), for labels "
            "affinity.classes(query_labels, database_labels)"
        )
    if affinity.shape != (n_queries, n_items):
        raise InputError(
            f"affinity is over {affinity.shape[0]} queries and {affinity.shape[1]} items, the "
            f"{what} are {n_queries} and {n_items}; labels and {what} must go in step"
        )


def _slices(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))
