"""A sharded collection on disk: a folder with `shards.json` and one ordinary collection a shard.

Each shard can be opened, checked and copied by itself, as `rankbits index check` does. What is
asked as a whole must be whole: a shard that is not named, is gone, or is older than `shards.json`
says would leave out items in silence, so it is refused.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankbits._files import READ_ERRORS, one_line, write_atomically
from rankbits._json import seal, unseal
from rankbits.codes import BinaryCodes
from rankbits.distributed._owners import MAX_SHARDS, Owners, make_owners
from rankbits.errors import FileFormatError, InputError
from rankbits.index import Collection

FORMAT, VERSION = "rankbits sharded collection", 2
NAME = "shards.json"


@dataclass(frozen=True)
class ShardLayout:
    """The shards of a collection: how ids are shared out, and the folder of each.

    Attributes
    ----------
    owners : Owners
        Which shard owns which ids.
    folders : tuple of str
        Where the shards are.
    changes : tuple of int
        How many changes each shard has had at least; it counts them.
    """

    owners: Owners
    folders: tuple[str, ...]
    changes: tuple[int, ...]

    def require_current(self, infos: Sequence[Mapping[str, Any]]) -> None:
        """Refuse shards that have lost changes, by what each of them says about itself."""
        for folder, info, least in zip(self.folders, infos, self.changes, strict=True):
            if info["change"] < least:
                raise FileFormatError(
                    f"{folder} is an older copy, or another collection: it has had "
                    f"{info['change']} changes and {NAME} knows of {least}; restore all shards "
                    "from one backup"
                )


def is_sharded(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a sharded collection.

    Parameters
    ----------
    folder : str or path-like
        Any folder, which need not exist.
    """
    return (Path(folder) / NAME).is_file()


def create_index(
    folder: str | os.PathLike[str],
    n_bits: int,
    n_shards: int = 2,
    *,
    by: str = "hash",
    bounds: Any = None,
    factors: bool = False,
) -> None:
    """Make an empty sharded collection, for `index` to open.

    Parameters
    ----------
    folder : str or path-like
        A new or empty folder that every machine of the cluster can reach.
    n_bits : int, 1 to 4096
        Code length.
    n_shards : int, default=2
        Number of shards, which cannot be changed later.
    by : {"hash", "range"}, default="hash"
        How ids are shared out: evenly by a hash, or by ranges.
    bounds : list of int or None, default=None
        For ranges, the first id of every shard but the first.
    factors : bool, default=False
        Whether items have two bytes of factors, as in `rankbits.index.Collection`.
    """
    owners = make_owners(n_shards, by, bounds)
    place = Path(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"folder must be new or empty, {place} is not")
    if not place.absolute().parent.is_dir():
        raise InputError(f"folder must lie in an existing folder, got {place}")
    is_new = not place.exists()
    place.mkdir(exist_ok=True)
    try:
        for name in _names(owners.n_shards):
            Collection.create(place / name, n_bits, factors=factors).close()
        _write(place, owners, [0] * owners.n_shards)
    except BaseException:
        for name in _names(owners.n_shards):
            shutil.rmtree(place / name, ignore_errors=True)
        with suppress(OSError):
            if is_new:
                place.rmdir()
        raise


def _names(n_shards: int) -> list[str]:
    return [f"shard-{i:05d}" for i in range(n_shards)]


def _write(folder: Path, owners: Owners, changes: Sequence[int]) -> None:
    record = {
        "by": owners.by,
        "bounds": list(owners.bounds),
        "shards": _names(owners.n_shards),
        "changes": list(changes),
    }
    with write_atomically(folder / NAME) as file:
        file.write(seal(FORMAT, VERSION, record))


def read_layout(folder: str | os.PathLike[str]) -> ShardLayout:
    """The shards of a collection; an ordinary one is a single shard."""
    place = Path(folder).absolute()
    if not is_sharded(place):
        return ShardLayout(Owners(1, "range"), (str(place),), (0,))
    owners, changes = _read(place / NAME)
    names = _names(owners.n_shards)
    for name in names:
        if not (place / name).is_dir():
            raise FileFormatError(f"{place} is damaged: there is no {place / name}")
    unnamed = sorted(path.name for path in place.glob("shard-[0-9]*") if path.name not in names)
    if unnamed:
        raise FileFormatError(
            f"{place} is damaged: it has {place / unnamed[0]}, which {NAME} does not name"
        )
    return ShardLayout(owners, tuple(str(place / name) for name in names), changes)


def _read(path: Path) -> tuple[Owners, tuple[int, ...]]:
    """How ids are shared out, and how many changes each shard has had at least."""
    record = unseal(path.read_bytes(), str(path), FORMAT, VERSION)
    lists: list[Any] = [record.get(name) for name in ("shards", "changes", "bounds")]
    names, changes, bounds = lists
    if not all(isinstance(value, list) for value in lists) or not 0 < len(names) <= MAX_SHARDS:
        raise FileFormatError(f"{path} is damaged: it must list shards, changes and bounds")
    are_counts = all(type(change) is int and change >= 0 for change in changes)
    if names != _names(len(names)) or len(changes) != len(names) or not are_counts:
        raise FileFormatError(f"{path} is damaged: its shards and changes do not fit together")
    try:
        owners = make_owners(len(names), record.get("by"), bounds or None)
    except (InputError, *READ_ERRORS) as error:
        raise FileFormatError(f"{path} is damaged: {one_line(error)[:200]}") from None
    return owners, tuple(changes)


class LocalShards:
    """A sharded collection that this process fills by itself, without a cluster.

    Parameters
    ----------
    folder : str or path-like
        Folder that `create_index` made.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        layout = read_layout(folder)
        self._folder, self._owners = Path(folder).absolute(), layout.owners
        self._shards = [Collection.open(place, writable=True) for place in layout.folders]
        self._next_id = max(shard.info()["next_id"] for shard in self._shards)

    def __enter__(self) -> "LocalShards":
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        """Close all shards, and write down how many changes each has had."""
        changes = [0 if kind else shard.info()["change"] for shard in self._shards]
        for shard in self._shards:
            shard.close()
        if kind is None and is_sharded(self._folder):
            _write(self._folder, self._owners, changes)

    def __len__(self) -> int:
        return sum(map(len, self._shards))

    def add(self, codes: BinaryCodes, ids: np.ndarray | None = None) -> None:
        """Add codes, each to the shard that owns its id."""
        if ids is None:
            ids = np.arange(self._next_id, self._next_id + len(codes))
        self._next_id = max(self._next_id, int(ids.max(initial=-1)) + 1)
        for shard, rows in self._owners.rows(ids).items():
            self._shards[shard].add(codes[rows], ids[rows])

    def compact(self) -> None:
        """Bring the items of each shard into one part."""
        for shard in self._shards:
            shard.compact()
