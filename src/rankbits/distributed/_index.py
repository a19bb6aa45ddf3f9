"""A collection in shards that is searched as one: every shard is asked, answers merge in order.

Answers are merged by (distance, id), or by score and id, which no cut into shards can change: the
result is that of one index with all items.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.codes import BinaryCodes
from rankbits.codes.note import require_same_model
from rankbits.codes.sides import require_item_side
from rankbits.distributed._cluster import connect
from rankbits.distributed._holders import Call, Holders
from rankbits.distributed._layout import read_layout
from rankbits.errors import InputError
from rankbits.index import Ragged, inputs, real_queries
from rankbits.index.results import combined, stacked, table

_BLOCK_QUERIES = 4096
_BLOCKS_AT_ONCE = 4  # for each replica
Codes = BinaryCodes | np.ndarray


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


class ShardedIndex:
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

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        writable: bool,
        replicas: int,
        cluster: str | None,
        settings: dict[str, Any],
    ) -> None:
        replicas = _check.whole("replicas", replicas, 1, 1000)
        layout = read_layout(folder)
        self._owners = layout.owners
        self._folder = os.fspath(folder)
        self._is_writable = _check.flag("writable", writable)
        with ExitStack() as stack:
            ray = stack.enter_context(connect(cluster))
            self._holders = Holders(ray, layout.folders, replicas, self._is_writable, settings)
            stack.callback(self._holders.stop)
            self._infos(layout.folders)
            self._stack = stack.pop_all()

    def _infos(self, folders: Sequence[str]) -> None:
        """Ask every shard what it holds; they must fit together."""
        infos = self._holders.ask_all("info")
        first = infos[0]
        for folder, info in zip(folders, infos, strict=True):
            for what in ("bits", "factors"):
                if info.get(what) != first.get(what):
                    raise InputError(
                        f"shards must have the same {what}, {folders[0]} has {first.get(what)} "
                        f"and {folder} has {info.get(what)}"
                    )
            models = [other for other in infos if other["items"] and other["model"]]
            if models and info["items"]:
                require_same_model(models[0]["model"], info["model"], "some shards", folder)
        self._n_bits = int(first["bits"])
        self._has_factors = bool(first.get("factors"))

    def __enter__(self) -> "ShardedIndex":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes of all shards; what was acknowledged is on the disk anyway."""
        self._stack.close()

    def __repr__(self) -> str:
        owners = self._owners
        return f"ShardedIndex({self._folder!r}, n_shards={owners.n_shards}, by={owners.by!r})"

    # What it holds

    @property
    def n_bits(self) -> int:
        """Bits in a code."""
        return self._n_bits

    @property
    def has_factors(self) -> bool:
        """Whether items have two bytes of factors beside their codes."""
        return self._has_factors

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return self._owners.n_shards

    @property
    def model(self) -> str | None:
        """Fingerprint of the model that made the codes, None if it is unknown."""
        return _model_of(self._holders.ask_all("info"))

    def info(self) -> list[dict[str, Any]]:
        """Counts and sizes of each shard, ready for JSON."""
        return self._holders.ask_all("info")

    def __len__(self) -> int:
        return sum(int(info["items"]) for info in self._holders.ask_all("info"))

    def __contains__(self, item: object) -> bool:
        return inputs.is_id(item) and bool(self._present(np.array([item], np.int64))[0])

    @property
    def ids(self) -> np.ndarray:
        """Ids of all items, ascending."""
        return np.sort(np.concatenate(self._holders.ask_all("ids")))

    def codes(self, ids: Any = None) -> BinaryCodes:
        """The codes of some items, in the order of ids; of all, in ascending order of id."""
        chosen = self.ids if ids is None else inputs.ids_of(ids, may_repeat=True)
        packed = np.zeros((len(chosen), -(-self._n_bits // 8)), np.uint8)
        rows = self._owners.rows(chosen)
        parts = self._ask_owners("codes", rows, lambda own: (chosen[own],))
        for own, part in zip(rows.values(), parts, strict=True):
            packed[own] = part.packed
        origin = parts[0] if parts else None
        model, side = (origin.model, origin.side) if origin is not None else (None, None)
        return BinaryCodes(packed, self._n_bits, model, side)

    # Changes

    def add(self, codes: Codes, ids: Any = None, *, factors: Any = None) -> np.ndarray:
        """Add codes under new ids; without ids they get those that follow the largest so far.

        Returns their ids. An id that exists already is an error, and then nothing is added.
        """
        given, factor_bytes = self._accepted(codes, factors)
        if ids is None:
            first = max(int(info["next_id"]) for info in self._holders.ask_all("info"))
            new_ids = np.arange(first, first + len(given))
        else:
            new_ids = inputs.ids_of(ids, len(given))
            is_there = self._present(new_ids)
            if is_there.any():
                raise InputError(
                    f"ids must be new, {int(new_ids[is_there][0])} exists already; call upsert() "
                    "to replace codes"
                )
        self._put(given, new_ids, factor_bytes)
        return new_ids

    def upsert(self, codes: Codes, ids: Any, *, factors: Any = None) -> None:
        """Add codes, replacing those that are there under the same id."""
        given, factor_bytes = self._accepted(codes, factors)
        self._put(given, inputs.ids_of(ids, len(given)), factor_bytes)

    def remove(self, ids: Any) -> None:
        """Remove items; if one of them does not exist, that is an error and nothing is removed."""
        self._require_writable()
        checked = inputs.ids_of(ids)
        is_there = self._present(checked)
        if not is_there.all():
            raise InputError(f"ids must be of items that exist, {checked[~is_there][0]} is not")
        rows = self._owners.rows(checked)
        self._ask_owners("discard", rows, lambda own: (checked[own],), is_change=True)

    def compact(self) -> None:
        """Bring the items of each shard into one part and forget removed ones for good."""
        self._require_writable()
        calls = [Call(shard, "compact") for shard in range(self.n_shards)]
        self._holders.ask(calls, is_change=True)

    def _accepted(self, codes: Codes, factors: Any) -> tuple[BinaryCodes, np.ndarray | None]:
        """What shall come in, if it fits what is there."""
        self._require_writable()
        infos = [info for info in self._holders.ask_all("info") if info["items"]]
        given = inputs.codes_of("codes", codes, self._n_bits, _model_of(infos))
        require_item_side("codes", given)
        return given, inputs.factors_of(factors, len(given), is_needed=self._has_factors)

    def _put(self, codes: BinaryCodes, ids: np.ndarray, factors: np.ndarray | None) -> None:
        rows = self._owners.rows(ids)

        def arguments(own: np.ndarray) -> tuple[Any, ...]:
            return codes[own], ids[own], None if factors is None else factors[own]

        self._ask_owners("put", rows, arguments, is_change=True)

    def _require_writable(self) -> None:
        if not self._is_writable:
            raise InputError(
                f"writable must be True to change {self._folder}; open it with writable=True"
            )

    def _present(self, ids: np.ndarray) -> np.ndarray:
        """Which ids are there."""
        is_there = np.zeros(len(ids), bool)
        rows = self._owners.rows(ids)
        answers = self._ask_owners("present", rows, lambda own: (ids[own],))
        for own, answer in zip(rows.values(), answers, strict=True):
            is_there[own] = answer
        return is_there

    def _ask_owners(
        self, name: str, rows: dict[int, np.ndarray], arguments: Any, *, is_change: bool = False
    ) -> list[Any]:
        """Ask the shards that own something, each about its own."""
        calls = [Call(shard, name, arguments(own)) for shard, own in rows.items()]
        return self._holders.ask(calls, is_change=is_change) if calls else []

    # Searches

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
        found = self._answers("within", queries, (reach,), self._filters(allowed), options)
        return stacked([combined(answers, size, None) for size, answers in found])

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
                Call(shard, name, (block, *request, allowed, last))
                for block in blocks
                for shard, allowed in enumerate(filters)
            ]
            answers = self._holders.ask(calls)
            for i, block in enumerate(blocks):
                yield len(block), answers[i * self.n_shards : (i + 1) * self.n_shards]


def _model_of(infos: Sequence[dict[str, Any]]) -> str | None:
    """The model of what shards hold."""
    return next((str(info["model"]) for info in infos if info["model"]), None)


def _rows_together(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[Any, Any]:
    """Tables of consecutive queries as one."""
    first, second = zip(*parts, strict=True)
    return np.concatenate(first), np.concatenate(second)
