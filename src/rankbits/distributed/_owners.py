"""Which shard an id belongs to: by ranges of ids, or by a hash that spreads any ids evenly.

The owner of an id never changes, so an item is in one shard only, wherever it is added from.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.errors import InputError
from rankbits.index import inputs

BY = ("hash", "range")
MAX_SHARDS = 10_000
_STEP, _FIRST, _SECOND = (  # of splitmix64, Steele, Lea and Flood, OOPSLA 2014
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


@dataclass(frozen=True)
class Owners:
    """How ids are shared out.

    Attributes
    ----------
    n_shards : int
        Number of shards.
    by : {"hash", "range"}
        By a hash of the id, or by ranges of ids.
    bounds : tuple of int
        For ranges, the first id of every shard but the first, ascending.
    """

    n_shards: int
    by: str = "hash"
    bounds: tuple[int, ...] = ()

    def of(self, ids: np.ndarray) -> np.ndarray:
        """The shard of each id.

        >>> Owners(3, "range", (10, 20)).of(np.array([0, 9, 10, 25])).tolist()
        [0, 0, 1, 2]
        """
        if self.by == "range":
            return np.searchsorted(np.array(self.bounds, np.int64), ids, side="right")
        return (_mixed(ids) % np.uint64(self.n_shards)).astype(np.int64)

    def rows(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        """The places in `ids` of what each shard owns; shards that own none are left out."""
        if len(ids) == 0:
            return {}
        owners = self.of(ids)
        order = np.argsort(owners, kind="stable")
        shards, starts = np.unique(owners[order], return_index=True)
        pieces = np.split(order, starts[1:])
        return {int(shard): rows for shard, rows in zip(shards, pieces, strict=True)}


def _mixed(ids: np.ndarray) -> np.ndarray:
    """Ids as numbers that look random, by the finalizer of splitmix64."""
    with np.errstate(over="ignore"):
        z = ids.astype(np.uint64) + _STEP
        z = (z ^ (z >> _SHIFTS[0])) * _FIRST
        z = (z ^ (z >> _SHIFTS[1])) * _SECOND
    mixed: np.ndarray = z ^ (z >> _SHIFTS[2])
    return mixed


def make_owners(n_shards: Any, by: Any, bounds: Any) -> Owners:
    """Owners as a caller asks for them, checked."""
    n_shards = _check.whole("n_shards", n_shards, 1, MAX_SHARDS)
    _check.choice("by", by, BY)
    if by == "hash":
        if bounds is not None:
            raise InputError("bounds must come with by='range'")
        return Owners(n_shards)
    if n_shards > 1 and bounds is None:
        raise InputError("bounds must be given with by='range': the first id of each further shard")
    ids = inputs.ids_of([] if bounds is None else bounds)
    if len(ids) != n_shards - 1 or (np.diff(ids) <= 0).any():
        raise InputError(
            f"bounds must be {n_shards - 1} ids, ascending, one less than shards, got "
            f"{ids.tolist()!r:.80}"
        )
    return Owners(n_shards, "range", tuple(int(bound) for bound in ids))


def even_bounds(ids: np.ndarray | range, n_shards: int) -> list[int]:
    """Bounds that give every shard as many of these ids, for `create_index`.

    Parameters
    ----------
    ids : ndarray of int64, or range
        Ids of the items, in any order.
    n_shards : int
        Number of shards, at most as many as there are ids.

    >>> even_bounds(range(10), 2)
    [5]
    """
    ordered = ids if isinstance(ids, range) else np.sort(ids)
    if len(ordered) < n_shards:
        raise InputError(f"n_shards must be at most the number of items, {len(ordered)}")
    return [int(ordered[len(ordered) * i // n_shards]) for i in range(1, n_shards)]
