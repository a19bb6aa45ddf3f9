"""A database in shards: histograms of disjoint shards add, so each is counted by itself."""

from collections.abc import Callable, Sequence

import numpy as np

from rankbits.affinity import Affinity
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.histogram import TieHistogram, count_ties

Progress = Callable[[int, int], None]


def count_shards(
    queries: BinaryCodes,
    shards: Sequence[tuple[BinaryCodes, Affinity]],
    exclude_self: bool = False,
    *,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> TieHistogram:
    """Count each shard of a database by itself and add: the same bits as counting it whole.

    With exclude_self, query i is item i of the shards taken one after the other.
    """
    sizes = [len(database) for database, _ in shards]
    if exclude_self and sum(sizes) != len(queries):
        raise InputError(
            f"exclude_self needs the queries to be the database, got {len(queries)} queries "
            f"and {sum(sizes)} items"
        )
    total: TieHistogram | None = None
    start = 0
    for (database, affinity), size in zip(shards, sizes, strict=True):
        own = _rows_inside(len(queries), start, size) if exclude_self else False
        step = _shifted(progress, len(queries) * start, len(queries) * sum(sizes))
        part = count_ties(queries, database, affinity, own, n_threads=n_threads, progress=step)
        total = part if total is None else total + part
        start += size
    if total is None:
        raise InputError("shards must not be empty")
    return total


def _rows_inside(n_queries: int, start: int, size: int) -> np.ndarray:
    """Row of query i within a shard that holds items start..start + size - 1, -1 if elsewhere."""
    rows = np.arange(n_queries) - start
    return np.where((rows >= 0) & (rows < size), rows, -1)


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Progress of one shard as progress of them all."""
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)
