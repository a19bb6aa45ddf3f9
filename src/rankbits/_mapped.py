"""Memory that is mapped from a file, and whether the file is still the one that was mapped.

Reading a page that a truncated file no longer has kills a process (SIGBUS). Every mapping that is
known here is watched: such a page reads as zeros instead, and the watch remembers it. So whoever
computes from mapped memory does it in an `unchanged` block, which looks at the file before and
after: a block that ends without an error has read the bytes that the file had when it was opened.

Files are told apart by their size and the time of their last write. The name may go to another
file, or go away: a mapping holds on to the file that it was made of.
"""

import mmap
import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np

from rankbits import _native
from rankbits._files import one_line
from rankbits.errors import FileFormatError, RankbitsError

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Watch(weakref.ref[mmap.mmap]):
    """A watch of a mapping, which ends with it.

    Attributes
    ----------
    number : what native code calls it
    has_file : whether it has the file, so that it can look at its size
    table, key : where it is found, and what native code takes it out of
    """

    __slots__ = ("has_file", "key", "number", "table")

    number: int
    has_file: bool
    table: "dict[int, Watch]"
    key: int


_watches: dict[int, Watch] = {}  # by id of the mapping


class Change(IntEnum):
    """What has happened to a mapped file, as the watch tells it."""

    NONE = 0
    UNKNOWN = 1  # it was written so recently that the time of another write may be the same
    WRITTEN = 2
    CUT = 3
    FAILED = 4  # the storage does not say


class Mapped(Protocol):
    """What may be mapped from a file."""

    def require_same_file(self) -> None:
        """Raise a FileFormatError if the file is no longer the one that was mapped."""


@dataclass(frozen=True, slots=True)
class MappedFile:
    """A mapping, and the file behind it.

    Attributes
    ----------
    mapping : the bytes
    n_bytes : how many bytes the file must have
    name : what messages call the file
    watch : what looks at the file
    remedy : what messages advise
    """

    mapping: mmap.mmap
    n_bytes: int
    name: str
    watch: "Watch"
    remedy: str = "write the file again and load it anew"

    @classmethod
    def of(cls, mapping: mmap.mmap, name: str, handle: int, remedy: str) -> "MappedFile":
        """A mapping from its beginning on of a file, of which `handle` is an open descriptor."""
        return cls(mapping, len(mapping), name, _watched(mapping, os.dup(handle)), remedy)

    @classmethod
    def behind(cls, array: np.ndarray) -> "MappedFile | None":
        """What an array is mapped from; None if its memory has no file behind it."""
        owner: Any = array
        start, name = 0, ""
        while not isinstance(owner, mmap.mmap):
            if isinstance(owner, np.memmap) and owner.offset is not None:
                start = owner.offset - owner.offset % mmap.ALLOCATIONGRANULARITY
                name = str(owner.filename or name)
            owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
            if owner is None:
                return None
        try:
            owner.size()
        except (OSError, ValueError):  # anonymous memory
            return None
        watch = _watches.get(id(owner)) or _watched(owner, _handle_of(name, owner))
        return cls(owner, start + len(owner), name or "the file behind the array", watch)

    def change(self) -> Change:
        """What has happened to the file since it was mapped.

        Whoever can write to a mapping may do so: then only what was cut off counts.
        """
        look = _native.look_at_mapping(self.watch.number)
        if look == Change.NONE and self.watch.has_file:
            return Change.NONE
        change = Change(look)
        if change == Change.FAILED:
            raise self._unknown("its status cannot be read")
        try:
            size = self.mapping.size()
        except OSError as error:
            raise self._unknown(one_line(error)) from error
        if change == Change.CUT or size < self.n_bytes:
            return Change.CUT
        if change == Change.NONE:
            return change
        with memoryview(self.mapping) as view:
            return change if view.readonly else Change.NONE

    def _unknown(self, reason: str) -> RankbitsError:
        return RankbitsError(
            f"{self.name} could not be compared with what was mapped: {reason}; try again when the "
            "storage works"
        )

    def require_same_file(self, verify: Callable[[], None] | None = None) -> None:
        """Refuse memory whose file is not the one that was mapped.

        Parameters
        ----------
        verify : function that raises unless the file has the bytes that it had, or None
            Called where the time of the last write does not say whether the file has changed.
        """
        change = self.change()
        if change == Change.NONE:
            return
        if change == Change.UNKNOWN:
            if verify is not None:
                verify()
            _native.accept_mapping(self.watch.number)
            return
        if change == Change.WRITTEN:
            what = "was written to while it was in use"
        else:
            sizes = f"it had {self.n_bytes} bytes, it has {self.mapping.size()}"
            what = f"was truncated while it was in use: {sizes}"
        raise FileFormatError(f"{self.name} {what}; {self.remedy}")


class unchanged:  # noqa: N801 - reads as a statement: with unchanged(x):
    """A block in which the files behind arrays stay as they are; if not, a FileFormatError.

    Every search is in such a block, so it is a class: a generator would take longer.

    Parameters
    ----------
    sources : arrays, `Mapped` objects, or anything else, which is left alone
    """

    __slots__ = ("_files",)

    def __init__(self, *sources: Any) -> None:
        self._files = [file for file in map(_mapped_of, sources) if file is not None]

    def __enter__(self) -> None:
        for file in self._files:
            file.require_same_file()

    def __exit__(self, *error: object) -> None:
        for file in self._files:  # what was read of a changed file may also have led to an error
            file.require_same_file()


def reads_unchanged(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a function fail if a file changes while it runs that an argument is mapped from."""

    @wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        with unchanged(*args, *kwargs.values()):
            return function(*args, **kwargs)

    return call


def map_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """The array of a .npy file, mapped and watched."""
    array = np.lib.format.open_memmap(path, mode="r")
    MappedFile.behind(array)
    return array


def _mapped_of(source: Any) -> Mapped | None:
    if source is None:
        return None
    if isinstance(source, np.ndarray):
        return None if source.base is None else MappedFile.behind(source)
    return source if hasattr(source, "require_same_file") else None


def _watched(mapping: mmap.mmap, handle: int) -> Watch:
    """A new watch of a mapping, which takes over the descriptor of its file."""
    watch = Watch(mapping, _native.release_mapping)
    watch.table, watch.key, watch.has_file = _watches, id(mapping), handle >= 0
    watch.number = _native.watch_mapping(np.frombuffer(mapping, np.uint8), handle)
    _watches[watch.key] = watch
    return watch


def _handle_of(name: str, mapping: mmap.mmap) -> int:
    """A descriptor of the file that a mapping of somebody else was made of; -1 if it is gone."""
    with suppress(OSError):
        handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if os.fstat(handle).st_size == mapping.size():
            return handle
        os.close(handle)
    return -1
