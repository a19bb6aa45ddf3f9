"""What workers do for a count: count ranges of items, and add tables."""

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from rankbits import histogram
from rankbits.codes import BinaryCodes
from rankbits.distributed._cluster import import_ray
from rankbits.distributed._ranges import Range
from rankbits.distributed._relevance import Relevance
from rankbits.errors import InputError
from rankbits.histogram import TieHistogram


def count_ranges(
    query_side: tuple[BinaryCodes, Relevance], ranges: Sequence[Range]
) -> TieHistogram:
    """Count ranges of items and add them; a worker runs this.

    Parameters
    ----------
    query_side : (BinaryCodes, Relevance)
        The queries and their labels.
    ranges : sequence of Range
        At least one.
    """
    n_threads = _threads()
    return reduce(add, [_count_range(*query_side, one, n_threads) for one in ranges])


def _count_range(
    queries: BinaryCodes, relevance: Relevance, items: Range, n_threads: int
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


def _threads() -> int:
    """Processors that Ray gave to this task."""
    resources = import_ray().get_runtime_context().get_assigned_resources()
    return max(1, int(resources.get("CPU", 1)))


def add_tables(*tables: TieHistogram) -> TieHistogram:
    """The sum of tables of the same queries; a worker runs this."""
    return reduce(add, tables)
