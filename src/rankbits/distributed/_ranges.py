"""The plan of a count: ranges of items, and tasks of one long range or of several short ones."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.distributed._cluster import n_cpus
from rankbits.distributed._jobs import ClusterTask
from rankbits.distributed._relevance import ShardedRelevance
from rankbits.distributed._shards import Shard, ShardFacts
from rankbits.errors import InputError

_MOST_PAIRS = 1 << 33  # of a task: some seconds
_USUAL_PAIRS = 1 << 27  # at least: some 50 ms, a dozen times what a task costs
_FEWEST_PAIRS = 1 << 25  # where less than that is there for each worker: some 10 ms
_TASKS_PER_CPU = 4
_SMALL_BYTES = 1 << 14
_GRAIN = 1 << 16  # items: ranges are multiples of it, so that they begin at whole pages


class Range(NamedTuple):
    """Items start..stop - 1 of a shard, and what only these need.

    Attributes
    ----------
    shard : Shard
    start, stop : int
    judged : ndarray of int64, shape (pairs, 3), or None
        Judged pairs of these items, numbered from the first of them.
    own : ndarray of int64, shape (queries,), or None
        The row of each query's own item in this range, -1 elsewhere.
    """

    shard: Shard
    start: int
    stop: int
    judged: np.ndarray | None
    own: np.ndarray | None


def plan_tasks(
    ray: Any,
    query_side: tuple[BinaryCodes, ShardedRelevance],
    shards: Sequence[Shard],
    facts: Sequence[ShardFacts],
    own: np.ndarray | None,
    n_threads: int,
) -> list[ClusterTask]:
    """Tasks of one long range, or of several short ones: a task costs as much as 10^7 pairs."""
    queries, relevance = query_side
    n_items = sum(fact.n_items for fact in facts)
    if n_items == 0:
        raise InputError("database must not be empty")
    n_pairs = pairs_per_task(len(queries) * n_items, n_cpus(ray))
    step = _GRAIN * max(1, -(-n_pairs // len(queries) // _GRAIN))
    side: Any = (queries, relevance.without_judgements())
    plain, shared = ((side,), ()) if _is_small(*side) else ((), (ray.put(side),))
    tasks, group, n_grouped = [], list[Range](), 0

    def add_task() -> None:
        arguments, size = (*plain, group, n_threads), len(queries) * n_grouped
        tasks.append(ClusterTask(_name(group), arguments, size, shared))

    for one in _ranges(relevance, shards, facts, own, step):
        group.append(one)
        n_grouped += one.stop - one.start
        if n_grouped * len(queries) >= min(n_pairs, _USUAL_PAIRS):
            add_task()
            group, n_grouped = [], 0
    if group:
        add_task()
    return tasks


def _is_small(queries: BinaryCodes, relevance: ShardedRelevance) -> bool:
    """Whether the query side can go along with each task, instead of into the object store."""
    labels = relevance.query_labels
    return queries.packed.nbytes + (0 if labels is None else labels.nbytes) <= _SMALL_BYTES


def _ranges(
    relevance: ShardedRelevance,
    shards: Sequence[Shard],
    facts: Sequence[ShardFacts],
    own: np.ndarray | None,
    step: int,
) -> Iterator[Range]:
    """All items in ranges of `step` items at most; shards that cannot be split are one range."""
    first = 0
    for shard, fact in zip(shards, facts, strict=True):
        width = step if fact.can_split else max(1, fact.n_items)
        for start in range(0, fact.n_items, width):
            stop = min(start + width, fact.n_items)
            judged = relevance.judged_between(first + start, first + stop)
            own_here = None if own is None else _rows_inside(own, first + start, stop - start)
            yield Range(shard, start, stop, judged, own_here)
        first += fact.n_items


def _name(ranges: Sequence[Range]) -> str:
    """The shards of a task, for messages."""
    first, last = ranges[0].shard.name, ranges[-1].shard.name
    return first if first == last else f"{first} to {last}"


def pairs_per_task(n_pairs: int, n_workers: int) -> int:
    """Pairs of a task: several tasks for each worker, or one if they would be short.

    >>> pairs_per_task(10**11, 2), pairs_per_task(10**9, 2), pairs_per_task(10**8, 2)
    (8589934592, 134217728, 50000000)
    >>> pairs_per_task(10**8, 1), pairs_per_task(10**8, 16)
    (100000000, 33554432)
    """
    share = -(-n_pairs // (_TASKS_PER_CPU * n_workers))
    if share < _USUAL_PAIRS:
        share = max(_FEWEST_PAIRS, min(_USUAL_PAIRS, -(-n_pairs // n_workers)))
    return min(share, _MOST_PAIRS)


def _rows_inside(own: np.ndarray, start: int, size: int) -> np.ndarray:
    """The same items as rows of a range that begins at item `start`, -1 elsewhere."""
    is_inside = (own >= start) & (own < start + size)
    return np.where(is_inside, own - start, -1)
