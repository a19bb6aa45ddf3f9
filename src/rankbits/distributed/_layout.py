"""A sharded collection on disk: a folder with `shards.json` and one ordinary collection a shard.

Each shard can be opened, checked and copied by itself, as `rankbits index check` does.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankbits._files import READ_ERRORS, write_atomically
from rankbits.codes import BinaryCodes
from rankbits.distributed._owners import MAX_SHARDS, Owners, make_owners
from rankbits.errors import FileFormatError, InputError
from rankbits.index import Collection

FORMAT, VERSION = "rankbits sharded collection", 1
NAME = "shards.json"


@dataclass(frozen=True)
class ShardLayout:
    """The shards of a collection: how ids are shared out, and the folder of each."""

    owners: Owners
    folders: tuple[str, ...]


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
        _write(place, owners)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        if not is_new:
            place.mkdir()
        raise


def _names(n_shards: int) -> list[str]:
    return [f"shard-{i:05d}" for i in range(n_shards)]


def _write(folder: Path, owners: Owners) -> None:
    record = {
        "format": FORMAT,
        "version": VERSION,
        "by": owners.by,
        "bounds": list(owners.bounds),
        "shards": _names(owners.n_shards),
    }
    with write_atomically(folder / NAME) as file:
        file.write((json.dumps(record, indent=1) + "\n").encode())


def read_layout(folder: str | os.PathLike[str]) -> ShardLayout:
    """The shards of a collection; an ordinary one is a single shard."""
    place = Path(folder).absolute()
    if not is_sharded(place):
        return ShardLayout(Owners(1, "range"), (str(place),))
    try:
        record = json.loads((place / NAME).read_bytes())
        names = record["shards"]
        is_known = (record["format"], record["version"]) == (FORMAT, VERSION)
        is_known = is_known and 0 < len(names) <= MAX_SHARDS and names == _names(len(names))
        bounds = record["bounds"] if record["by"] == "range" else None
        owners = make_owners(len(names), record["by"], bounds)
    except (*READ_ERRORS, RecursionError):
        is_known = False
    if not is_known:
        raise FileFormatError(f"{place / NAME} is damaged, or of another rankbits")
    for name in names:
        if not (place / name).is_dir():
            raise FileFormatError(f"{place} is damaged: there is no {place / name}")
    return ShardLayout(owners, tuple(str(place / name) for name in names))


class LocalShards:
    """A sharded collection that this process fills by itself, without a cluster.

    Parameters
    ----------
    folder : str or path-like
        Folder that `create_index` made.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        layout = read_layout(folder)
        self._owners = layout.owners
        self._shards = [Collection.open(place, writable=True) for place in layout.folders]
        self._next_id = max(shard.info()["next_id"] for shard in self._shards)

    def __enter__(self) -> "LocalShards":
        return self

    def __exit__(self, *error: object) -> None:
        for shard in self._shards:
            shard.close()

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
