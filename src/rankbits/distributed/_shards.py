"""Shards of a database: what they hold is known at once, their items are read range by range.

A shard is a file of codes with its labels, or any object of one's own that can be pickled and
answers the same two questions, such as one that reads from an object store.
"""

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rankbits import _check
from rankbits._files import require_file
from rankbits.codes import BinaryCodes, npy
from rankbits.datasets import load_codes, load_labels
from rankbits.errors import InputError

_KINDS = {"b": "integers", "i": "integers", "u": "integers", "U": "strings", "S": "bytes"}


@dataclass(frozen=True)
class ShardFacts:
    """What a shard holds.

    Attributes
    ----------
    n_items : int
        Number of items.
    n_bits : int
        Code length.
    model, side : str or None
        Fingerprint of the model of the codes and what they are for, None where it is unknown.
    labels : str or None
        What its labels are, in words, which must be the same for all shards and the queries; None
        without labels.
    can_split : bool
        Whether a range of its items can be read without reading all of them.
    """

    n_items: int
    n_bits: int
    model: str | None = None
    side: str | None = None
    labels: str | None = None
    can_split: bool = True


@runtime_checkable
class Shard(Protocol):
    """A part of a database, for `count_ties`: what it holds, and its items range by range.

    Objects are sent to the workers by pickle, so the class must be importable there.
    """

    @property
    def name(self) -> str:
        """What error messages call it."""
        ...

    def describe(self) -> ShardFacts:
        """What it holds, found out without reading all of it."""
        ...

    def read(self, start: int, stop: int) -> tuple[BinaryCodes, np.ndarray | None]:
        """Codes and labels of items start..stop - 1; the labels are None if it has none."""
        ...


@dataclass(frozen=True)
class FileShard:
    """A file of codes and, unless relevance is judged, the file of its labels.

    Attributes
    ----------
    path : str
        File of codes as `rankbits.datasets.load_codes` reads it, also FILE:KEY.
    labels_path : str or None
        File of labels as `rankbits.datasets.load_labels` reads it.
    n_bits : int or None
        Code length, for files that do not say it.
    form : {"auto", "packed", "bits", "logits"}
        How the file holds codes.
    """

    path: str
    labels_path: str | None = None
    n_bits: int | None = None
    form: str = "auto"

    @property
    def name(self) -> str:
        """The file of codes."""
        return self.path

    def describe(self) -> ShardFacts:
        """What the files hold; a .npy of packed codes is mapped and not read."""
        packed = self._mapped()
        codes = self._load() if packed is None else packed[:0]
        n_items = len(codes) if packed is None else len(packed)
        labels = None if self.labels_path is None else load_labels(self.labels_path)
        if labels is not None and len(labels) != n_items:
            raise InputError(
                f"{self.labels_path} has {len(labels)} labels and {self.path} has {n_items} codes; "
                "there must be one label per code"
            )
        words = None if labels is None else describe_labels(labels)
        can_split = packed is not None
        return ShardFacts(n_items, codes.n_bits, codes.model, codes.side, words, can_split)

    def read(self, start: int, stop: int) -> tuple[BinaryCodes, np.ndarray | None]:
        """Codes and labels of some items."""
        packed = self._mapped()
        codes = self._load()[start:stop] if packed is None else packed[start:stop]
        if len(codes) != stop - start:
            raise InputError(f"{self.path} changed while it was being read; run the job again")
        labels = None if self.labels_path is None else _labels_of(self.labels_path)[start:stop]
        return codes, labels

    def _load(self) -> BinaryCodes:
        return load_codes(self.path, self.n_bits, self.form)

    def _mapped(self) -> "_MappedCodes | None":
        """The codes of a .npy that says of itself that they are packed; None for other files."""
        if not self.path.endswith(".npy") or self.form not in ("auto", "packed"):
            return None
        marked = npy.map_marked_codes(require_file(self.path, "a file of codes"))
        if marked is None:
            return None
        packed, note = marked
        n_bits = note.resolve_bits(self.n_bits, packed.shape[1], self.path)
        return _MappedCodes(packed, n_bits, note.model, note.side)


@dataclass(frozen=True, eq=False)
class _MappedCodes:
    """Packed codes of a mapped file, of which `BinaryCodes` would check every last byte."""

    packed: np.ndarray
    n_bits: int
    model: str | None
    side: str | None

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, rows: slice) -> BinaryCodes:
        return BinaryCodes(self.packed[rows], self.n_bits, self.model, self.side)


def _labels_of(path: str) -> np.ndarray:
    """Labels of a file; those that cannot be mapped are kept for the next range of the file."""
    return (
        load_labels(path) if path.endswith(".npy") else _last_labels(path, os.stat(path).st_mtime)
    )


@lru_cache(maxsize=1)
def _last_labels(path: str, mtime: float) -> np.ndarray:
    return load_labels(path)


def describe_labels(labels: np.ndarray) -> str:
    """Labels in words: those of queries and of all shards must have the same."""
    if labels.ndim == 2:
        return f"tags in {labels.shape[1]} columns"
    return f"classes as {_KINDS.get(labels.dtype.kind, str(labels.dtype))}"


def as_shards(database: Any, labels: Any, n_bits: int | None, form: str) -> list[Shard]:
    """The shards of a database: files with their files of labels, or shards as they are."""
    listed = _listed(database)
    if not listed:
        raise InputError("database must name at least one shard, got none")
    shards = [item for item in listed if not isinstance(item, str | os.PathLike)]
    strangers = [item for item in shards if not isinstance(item, Shard)]
    if strangers:
        raise InputError(f"database must be paths or shards, got {_check.describe(strangers[0])}")
    if shards and len(shards) < len(listed):
        raise InputError("database must be files or shards, got both")
    if shards and labels is not None:
        raise InputError("database_labels must not be given for shards that read their own")
    if shards:
        return shards
    paths = [os.path.abspath(path) for path in listed]  # workers have folders of their own
    if labels is None:
        return [FileShard(path, None, n_bits, form) for path in paths]
    label_paths = [os.path.abspath(path) for path in _listed(labels)]
    if len(label_paths) != len(paths):
        raise InputError(
            f"database_labels must be a file for each of database, got {len(label_paths)} for "
            f"{len(paths)}"
        )
    return [
        FileShard(path, label_path, n_bits, form)
        for path, label_path in zip(paths, label_paths, strict=True)
    ]


def _listed(values: Any) -> list[Any]:
    """A list of what was given, also if it was only one."""
    if isinstance(values, (str, os.PathLike, Shard)):
        return [values]
    return list(values)
