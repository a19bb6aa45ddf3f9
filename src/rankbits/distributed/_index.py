"""A collection in shards that is searched as one: every shard is asked, answers merge in order.

Answers are merged by (distance, id), or by score and id, which no cut into shards can change: the
result is that of one index with all items.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.codes import BinaryCodes
from rankbits.distributed._changes import Codes, ShardedCollection
from rankbits.distributed._holders import HolderCall
from rankbits.index import Ragged, inputs, real_queries
from rankbits.index.results import combined, stacked, table

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


class ShardedIndex(ShardedCollection):
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

    def search(
        self, codes: Codes, k: int, ties: str = "id", *, allowed: Any = None, **options: Any
    ) -> Any:
        """The k nearest items of each query, in order of (distance, id).

        Parameters
        ----------
        codes : the queries, BinaryCodes or packed uint8
        k : int, 1 or more
        ties : "id" or "complete"
            Which items that are as far as the k-th to return: those of lowest id, or all.
        allowed : ids that may be returned, or a mask with an entry for each of `ids`
        options : options of the kind for this search

        Returns
        -------
        distances, ids : int32 and int64 arrays (queries, k) for `ties="id"`
            Where fewer than k items may be returned, places are filled with 2147483647 and -1.
        Ragged : for `ties="complete"`
        """
        is_complete = _check.choice("ties", ties, ("id", "complete")) == "complete"
        queries = inputs.queries_of(codes, self._n_bits, None)
        k, filters = inputs.how_many(k), self._filters(allowed)
        parts: list[Any] = []
        for size, answers in self._answers("search", queries, (k, ties), filters, options):
            n_places = min(k, sum(columns for columns, _ in answers))
            merged = combined(
                [ragged for _, ragged in answers], size, max(1, n_places), is_complete=is_complete
            )
            parts.append(merged if is_complete else table(merged, n_places))
        if is_complete:
            return stacked(parts)
        return _rows_together(parts)

    def within(self, codes: Codes, radius: int, *, allowed: Any = None, **options: Any) -> Ragged:
        """Every item at distance `radius` or less of each query, in order of (distance, id)."""
        queries = inputs.queries_of(codes, self._n_bits, None)
        reach = min(_check.whole("radius", radius, 0), self._n_bits)
        blocks = self._answers("within", queries, (reach,), self._filters(allowed), options)
        return stacked([combined(answers, size, None) for size, answers in blocks])

    def search_real(
        self, weights: Any, k: int, *, allowed: Any = None, correction: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k items with the largest inner product of a query's weights and their codes.

        Parameters and result are those of `rankbits.index.HammingIndex.search_real`.
        """
        numbers = real_queries.weights_of(weights, self._n_bits)
        real_queries.correction_of(correction, numbers, has_factors=self._has_factors)
        k, parts = inputs.how_many(k), []
        filters = self._filters(allowed)
        for size, answers in self._answers("search_real", numbers, (k,), filters, correction):
            n_places = min(k, sum(scores.shape[1] for scores, _ in answers))
            parts.append(real_queries.merged(answers, size, n_places))
        return _rows_together(parts)

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

    def _answers(
        self,
        name: str,
        queries: BinaryCodes | np.ndarray,
        request: tuple[Any, ...],
        filters: Sequence[np.ndarray | None],
        last: Any,
    ) -> Iterator[tuple[int, list[Any]]]:
        """For each block of queries its size and the answers of all shards."""
        replicas, n = self._holders.replicas, len(queries)
        step = max(1, min(_BLOCK_QUERIES, -(-n // replicas)))
        starts = range(0, max(1, n), step)
        for at in range(0, len(starts), _BLOCKS_AT_ONCE * replicas):
            blocks = [queries[s : s + step] for s in starts[at : at + _BLOCKS_AT_ONCE * replicas]]
            calls = [
                HolderCall(shard, name, (block, *request, allowed, last))
                for block in blocks
                for shard, allowed in enumerate(filters)
            ]
            answers = self._holders.ask(calls)
            for i, block in enumerate(blocks):
                yield len(block), answers[i * self.n_shards : (i + 1) * self.n_shards]


def _rows_together(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[Any, Any]:
    """Tables of consecutive queries as one."""
    first, second = zip(*parts, strict=True)
    return np.concatenate(first), np.concatenate(second)
