"""Counting ties over shards: each worker counts ranges of items, tables of counts add in a tree.

Counts are whole numbers and addition of them has no order, so the result is the same bits as
counting on one machine, whatever the number of workers and whatever was lost on the way.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.codes import BinaryCodes, check_sides
from rankbits.codes.note import require_same_model
from rankbits.datasets import load_codes
from rankbits.distributed._cluster import connect
from rankbits.distributed._count_tasks import Table, add_tables, count_ranges, sum_tables
from rankbits.distributed._jobs import ClusterTask, remote_function, run_tasks
from rankbits.distributed._ranges import plan_tasks
from rankbits.distributed._relevance import ShardedRelevance, read_relevance
from rankbits.distributed._shards import FileShard, Shard, ShardFacts, as_shards
from rankbits.errors import ClusterError, InputError
from rankbits.histogram import TieHistogram, own_items

Progress = Callable[[int, int], None]

_FAN_IN = 8  # tables that one task adds


def count_ties(
    queries: BinaryCodes | str | os.PathLike[str],
    database: Any,
    exclude_self: bool | np.ndarray = False,
    *,
    query_labels: Any = None,
    database_labels: Any = None,
    query_tags: Any = None,
    database_tags: Any = None,
    graded: bool = False,
    judgements: Any = None,
    n_bits: int | None = None,
    form: str = "auto",
    cluster: str | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> TieHistogram:
    """Count a database in shards by distance and affinity, on a cluster.

    The result is the same bits as `rankbits.count_ties` of the whole database.

    Parameters
    ----------
    queries : BinaryCodes, str or path-like
        Codes of the queries, or their file.
    database : list of paths, one path, or list of `Shard`
        Files of codes that every machine of the cluster can read, or shards of one's own, which
        read their labels as well. Items are numbered from 0 through all shards, in this order.
    exclude_self : bool or ndarray of int, shape (queries,), default=False
        Whether to leave out the item that is the query itself, as in `rankbits.count_ties`.
    query_labels, database_labels : array or path, and list of paths
        Classes (1-D) or multi-hot tags (2-D) of the queries, and for each file of codes the file
        of its labels. Equal classes and shared tags are relevant.
    query_tags, database_tags : array or path, and list of paths
        The same for tags alone.
    graded : bool, default=False
        Whether the level of two sets of tags is the number of tags that they share.
    judgements : array of shape (n, 3), path, or `rankbits.affinity.Judgements`
        Instead of labels: rows (query, item, level).
    n_bits, form : int or None, and str
        Code length and form of files that do not say it, as in `rankbits.datasets.load_codes`.
    cluster : str or None, default=None
        The cluster, as in `connect`; None for the cores of this machine.
    n_threads : int, default=1
        Threads, and processors, of each task.
    progress : callable or None, default=None
        Called as progress(done, total) with numbers of query-item pairs.

    Returns
    -------
    histogram : TieHistogram
    """
    n_threads = _check.whole("n_threads", n_threads, 1, 1024)
    relevance = read_relevance(query_labels, query_tags, graded, judgements)
    item_labels = database_labels if database_tags is None else database_tags
    shards = as_shards(database, item_labels, n_bits, form)
    codes = queries if isinstance(queries, BinaryCodes) else load_codes(queries, n_bits, form)
    if not len(codes):
        raise InputError("queries must not be empty")
    with connect(cluster) as ray:
        facts = _inspect(ray, shards)
        sizes = [fact.n_items for fact in facts]
        _require_fit(codes, relevance, shards, facts)
        own = own_items(exclude_self, len(codes), sum(sizes))
        tasks = plan_tasks(ray, (codes, relevance), shards, facts, own, n_threads)
        return _count(ray, tasks, n_threads, progress)


def _inspect(ray: Any, shards: Sequence[Shard]) -> list[ShardFacts]:
    """What each shard holds: from its header here, by a task if it must be read to know."""
    facts: dict[str, ShardFacts] = {}
    must_read = [shard for shard in shards if not _has_header(shard)]
    tasks = [ClusterTask(shard.name, (shard,), 1) for shard in must_read]
    places = {id(task): shard for task, shard in zip(tasks, must_read, strict=True)}

    def take(task: ClusterTask, value: Any) -> None:
        facts[str(id(places[id(task)]))] = ray.get(value)

    run_tasks(ray, _describe, tasks, take)
    return [facts.get(str(id(shard))) or shard.describe() for shard in shards]


def _has_header(shard: Shard) -> bool:
    """Whether a shard can say at once what it holds."""
    if not isinstance(shard, FileShard):
        return True
    paths = [shard.path, shard.labels_path or shard.path]
    return all(path.endswith(".npy") for path in paths)


def _describe(shard: Shard) -> ShardFacts:
    return shard.describe()


def _require_fit(
    queries: BinaryCodes,
    relevance: ShardedRelevance,
    shards: Sequence[Shard],
    facts: Sequence[ShardFacts],
) -> None:
    """Refuse shards that differ from the queries in length, model, side or kind of labels."""
    words = relevance.labels_in_words
    for shard, fact in zip(shards, facts, strict=True):
        if fact.n_bits != queries.n_bits:
            raise InputError(
                f"database must have codes of {queries.n_bits} bits as the queries have, "
                f"{shard.name} has {fact.n_bits}; encode both with the same model"
            )
        require_same_model(queries.model, fact.model, "queries", f"codes of {shard.name}")
        require_same_model(facts[0].model, fact.model, shards[0].name, shard.name)
        width = queries.packed.shape[1]
        nothing = BinaryCodes(np.empty((0, width), np.uint8), fact.n_bits, fact.model, fact.side)
        check_sides(queries, nothing)
        if fact.labels != words:
            raise InputError(
                f"database_labels must be as the queries need them ({words or 'none'}), "
                f"{shard.name} has {fact.labels or 'none'}"
            )
    relevance.require_fit(len(queries), sum(fact.n_items for fact in facts))


def _count(
    ray: Any, tasks: Sequence[ClusterTask], n_threads: int, progress: Progress | None
) -> TieHistogram:
    """Run the tasks and add what they give, eight tables at a time on the workers."""
    adding = remote_function(add_tables).options(num_cpus=0, max_retries=-1)
    tables: list[list[Any]] = [[]]  # by how often they were added
    n_done, n_pairs = 0, sum(task.size for task in tasks)

    def take(task: ClusterTask, value: Any) -> None:
        nonlocal n_done
        tables[0].append(value)
        level = 0
        while len(tables[level]) == _FAN_IN and len(tasks) > _FAN_IN:
            if level + 1 == len(tables):
                tables.append([])
            tables[level + 1].append(adding.remote(*tables[level]))
            tables[level] = []
            level += 1
        n_done += task.size
        if progress is not None:
            progress(n_done, n_pairs)

    run_tasks(ray, count_ranges, tasks, take, cpus_per_task=n_threads)
    try:
        left: list[Table] = ray.get([table for level in tables for table in level])
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"the counts were lost with the machines that held them: {type(error).__name__}"
        ) from None
    return sum_tables(left)
