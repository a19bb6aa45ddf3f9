"""A collection in shards that is searched as one: every shard is asked, answers merge in order.

Answers are merged by (distance, id), or by score and id, which no cut into shards can change: the
result is that of one index with all items.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rankbits import _check
from rankbits._mapped import unchanged
from rankbits.codes import Queries
from rankbits.distributed._changes import ShardedCollection
from rankbits.distributed._holders import HolderCall
from rankbits.index import Matches, inputs, real_queries
from rankbits.index.door import BITS, CodeRequest, Door, Moment
from rankbits.index.results import combined, matches_of, together

_BLOCK_QUERIES = 4096
_BLOCKS_AT_ONCE = 4  # for each replica


def index(
    folder: str | os.PathLike[str],
    *,
    writable: bool = False,
    replicas: int = 1,
    cluster: str | None = None,
    verify: bool = True,
    kind: str = "auto",
    n_threads: int | None = None,
    **options: Any,
) -> "ShardedIndex":
    """Open a sharded collection on a cluster, each shard in processes of its own.

    Parameters
    ----------
    folder : str or path-like
        Folder that `create_index` or `rankbits index build --shards` made, on storage that every
        machine can reach. An ordinary collection is one shard.
    writable : bool, default=False
        Whether it is to be changed. One process at a time can change a collection.
    replicas : int, default=1
        Processes for each shard, on different machines if there are several. They share the
        queries, and if one is lost the others answer. On several machines, a writable index has
        one.
    cluster : str or None, default=None
        The cluster, as in `connect`; None for the cores of this machine.
    verify : bool, default=True
        Whether files are compared with their checksums when they are opened.
    kind, n_threads, options : str, int or None, and keyword arguments
        How each shard is searched, as in `rankbits.index.HammingIndex`. Without n_threads, the
        processors of a machine are shared out evenly.

    Returns
    -------
    index : ShardedIndex
        Close it, or use it in a `with` block.
    """
    return ShardedIndex(
        folder,
        writable=writable,
        replicas=replicas,
        cluster=cluster,
        settings={"verify": bool(verify), "kind": kind, "n_threads": n_threads, **options},
    )


class ShardedIndex(ShardedCollection, Door):
    """Codes by id in shards on a cluster; `index` opens one.

    A search sees every shard at one moment, and all changes that were acknowledged before it. A
    change of items of several shards is one step in each shard; when it returns, all of it is on
    the disk.

    Parameters
    ----------
    folder, writable, replicas, cluster : as in `index`
    settings : dict
        Arguments of `rankbits.index.Collection.open` for each shard.
    """

    @property
    def n_threads(self) -> int | None:
        """Threads by which candidates of all shards are compared again, None for all."""
        return None

    @contextmanager
    def _look(self, *sources: Any) -> Iterator["ShardsMoment"]:
        with unchanged(*sources):
            yield ShardsMoment(self)

    def _filters(self, allowed: Any) -> list[np.ndarray | None]:
        """For each shard, its own among the ids that may be returned."""
        if allowed is None:
            return [None] * self.n_shards
        array = _check.array("allowed", allowed)
        everything = self.ids if array.dtype == bool else np.empty(0, np.int64)
        chosen = inputs.selections(array, [lambda: everything], len(everything))[0]
        ids = everything[chosen] if array.dtype == bool else chosen
        rows = self._owners.rows(ids)
        return [ids[rows[i]] if i in rows else ids[:0] for i in range(self.n_shards)]

    def answers(
        self, queries: Queries, settings: dict[str, Any], allowed: Any
    ) -> Iterator[tuple[int, list[Matches]]]:
        """For each block of queries its size, and what every shard has for it.

        Parameters
        ----------
        queries : the queries
        settings : arguments of `Collection.search`
        allowed : as of `Collection.search`, of all shards
        """
        replicas, n = self._holders.replicas, len(queries)
        filters = self._filters(allowed)
        step = max(1, min(_BLOCK_QUERIES, -(-n // replicas)))
        starts = range(0, max(1, n), step)
        for at in range(0, len(starts), _BLOCKS_AT_ONCE * replicas):
            blocks = [queries[s : s + step] for s in starts[at : at + _BLOCKS_AT_ONCE * replicas]]
            calls = [
                HolderCall(shard, "search", (block, allowed, settings))
                for block in blocks
                for shard, allowed in enumerate(filters)
            ]
            answers = self._holders.ask(calls)
            for i, block in enumerate(blocks):
                yield len(block), answers[i * self.n_shards : (i + 1) * self.n_shards]


class ShardsMoment(Moment):
    """All shards as they are found."""

    def __init__(self, index: ShardedIndex) -> None:
        self._index = index
        self.codes_of = (index.codes,)

    def __len__(self) -> int:
        return len(self._index)

    def nearest(self, request: CodeRequest) -> Matches:
        """What all shards have, merged by (distance, id), which no cut into shards can change."""
        queries, settings = request.tables[0], {"k": request.k, "by": request.by, **request.options}
        if request.by == BITS:
            settings["ties"] = "complete" if request.is_complete else "id"
            settings["within"] = request.radius
            asked = Queries(inputs.queries_of(queries.bits, self._index.n_bits, None))
        else:
            real_queries.checked(queries, self._index.n_bits, has_factors=self._index.has_factors)
            asked = Queries(weights=queries.weights, correction=queries.correction)
        if request.n_threads is not None:
            settings["n_threads"] = request.n_threads
        k, parts = request.k, []
        for size, answers in self._index.answers(asked, settings, request.allowed):
            found = [answer.ragged() for answer in answers]
            merged = combined(found, size, k, is_complete=request.is_complete)
            places = [answer.n_places for answer in answers if answer.n_places is not None]
            n_places = None if k is None or request.is_complete else min(k, sum(places))
            parts.append(matches_of(merged, n_places))
        return together(parts)
