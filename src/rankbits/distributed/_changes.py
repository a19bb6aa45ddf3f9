"""A collection in shards: what it holds, and changes that go to the owners of ids.

Every shard takes its part of a change in one step, on the disk before the call returns. Changes may
be repeated, so one that was cut off by the death of a process is simply made again.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Self

import numpy as np

from rankbits import _check
from rankbits.codes import BinaryCodes
from rankbits.codes.note import require_same_model
from rankbits.codes.sides import require_item_side
from rankbits.distributed._cluster import connect
from rankbits.distributed._holders import HolderCall, Holders
from rankbits.distributed._layout import ShardLayout, read_layout
from rankbits.errors import InputError
from rankbits.index import inputs

Codes = BinaryCodes | np.ndarray


class ShardedCollection:
    """Codes by id in shards on a cluster, without searches.

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
            self._require_fitting(layout)
            self._stack = stack.pop_all()

    def _require_fitting(self, layout: ShardLayout) -> None:
        """Ask every shard what it holds; they must fit together."""
        infos, folders = self._holders.ask_all("info"), layout.folders
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
        layout.require_current(infos)
        self._n_bits = int(first["bits"])
        self._has_factors = bool(first.get("factors"))

    def __enter__(self) -> Self:
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
        calls = [HolderCall(shard, "compact") for shard in range(self.n_shards)]
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
        calls = [HolderCall(shard, name, arguments(own)) for shard, own in rows.items()]
        return self._holders.ask(calls, is_change=is_change) if calls else []


def _model_of(infos: Sequence[dict[str, Any]]) -> str | None:
    """The model of what shards hold."""
    return next((str(info["model"]) for info in infos if info["model"]), None)
