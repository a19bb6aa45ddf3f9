"""A database in shards: histograms of disjoint shards add, so each is counted by itself."""

from collections.abc import Callable, Sequence

import numpy as np

from rankbits.affinity import Affinity
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.histogram import TieHistogram, count_ties, own_items

Progress = Callable[[int, int], None]


def count_shards(
    queries: BinaryCodes,
    shards: Sequence[tuple[BinaryCodes, Affinity]],
    exclude_self: bool | np.ndarray = False,
    *,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> TieHistogram:
    """Count each shard of a database by itself and add: the same bits as counting it whole.

    Parameters
    ----------
    queries : BinaryCodes
        Codes of the queries.
    shards : sequence of (BinaryCodes, Affinity) pairs
        The codes of each shard's items, and the affinity of all queries to these items. There must
        be at least one shard.
    exclude_self : bool or ndarray of int, shape (queries,), default=False
        Whether to leave out the item that is the query itself. True means that query i is item i;
        an array has the number of each query's own item, -1 if it has none. Items are numbered
        from 0 through all shards, in their order.
    n_threads : int or None, default=None
        Number of threads, from 1 to 1024. None takes the environment variable RANKBITS_NUM_THREADS,
        or every processor that this process may use if the variable is not set.
    progress : callable or None, default=None
        Function that is called after each block as progress(done, total), with the number of
        query-item pairs counted so far and in all shards together.

    Returns
    -------
    histogram : TieHistogram
        Counts over all shards, with every affinity level that any of them has.
    """
    sizes = [len(database) for database, _ in shards]
    own = own_items(exclude_self, len(queries), sum(sizes))
    total: TieHistogram | None = None
    start = 0
    for (database, affinity), size in zip(shards, sizes, strict=True):
        own_here = False if own is None else _rows_inside(own, start, size)
        step = _shifted(progress, len(queries) * start, len(queries) * sum(sizes))
        part = count_ties(queries, database, affinity, own_here, n_threads=n_threads, progress=step)
        total = part if total is None else total + part
        start += size
    if total is None:
        raise InputError("shards must not be empty")
    return total


def _rows_inside(own: np.ndarray, start: int, size: int) -> np.ndarray:
    """The same items as rows of a shard that holds items start..start + size - 1, -1 elsewhere."""
    is_inside = (own >= start) & (own < start + size)
    return np.where(is_inside, own - start, -1)


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Progress of one shard as progress of them all."""
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)
