"""What workers do for a count: count ranges of items, and add tables."""

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from rankbits import histogram
from rankbits.codes import BinaryCodes
from rankbits.distributed._ranges import Range
from rankbits.distributed._relevance import ShardedRelevance
from rankbits.errors import InputError
from rankbits.histogram import TieHistogram

Table = tuple[np.ndarray, np.ndarray]  # counts in few bytes, and levels


def pack_table(hist: TieHistogram) -> Table:
    """A histogram with its counts in as few bytes as they need, to be sent."""
    widest = np.min_scalar_type(int(hist.counts.max(initial=0)))
    return hist.counts.astype(widest), hist.levels


def sum_tables(tables: Sequence[Table]) -> TieHistogram:
    """The histogram of all shards whose tables are given."""
    return reduce(add, [TieHistogram(counts, levels) for counts, levels in tables])


def count_ranges(
    query_side: tuple[BinaryCodes, ShardedRelevance], ranges: Sequence[Range], n_threads: int
) -> Table:
    """Count ranges of items and add them; a worker runs this.

    Parameters
    ----------
    query_side : (BinaryCodes, ShardedRelevance)
        The queries and their labels.
    ranges : sequence of Range
        At least one.
    n_threads : int
        Threads, as many as Ray gave processors to this task.
    """
    return pack_table(reduce(add, [_count_range(*query_side, one, n_threads) for one in ranges]))


def _count_range(
    queries: BinaryCodes, relevance: ShardedRelevance, items: Range, n_threads: int
) -> TieHistogram:
    name = items.shard.name
    try:
        codes, labels = items.shard.read(items.start, items.stop)
        affinity = relevance.affinity(labels, items.judged, len(queries), len(codes))
        own: bool | np.ndarray = False if items.own is None else items.own
        return histogram.count_ties(queries, codes, affinity, own, n_threads=n_threads)
    except InputError as error:
        if name in str(error):
            raise
        raise type(error)(f"{name}: {error}") from None


def add_tables(*tables: Table) -> Table:
    """The sum of tables of the same queries; a worker runs this."""
    return pack_table(sum_tables(tables))
