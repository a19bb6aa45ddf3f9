"""Reading a collection: the state on the disk as it stands, searched, copied and checked.

Every method looks whether another process has committed something since, and renews its view.
"""

import os
import threading
from pathlib import Path
from typing import Any, Self

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.errors import FileFormatError, InputError
from rankbits.index import _audit, _copies, _inputs
from rankbits.index._hamming import HammingIndex
from rankbits.index._holding import Codes
from rankbits.index._results import Ragged
from rankbits.index._state import State
from rankbits.index._store import Store
from rankbits.index._view import View, index_of


class Reading:
    """What readers of a collection and its writer can do alike."""

    def __init__(self, store: Store, *, is_writable: bool, verify: bool, **options: Any) -> None:
        self._store = store
        self._is_writable = is_writable
        self._is_verified = verify
        self._options = options
        self._lock = threading.RLock()
        self._view = View(**options)
        self._state: State | None = None  # the last that was seen
        self._is_open = True
        self._is_sure = False  # whether a writer knows that no other state is on the disk
        try:
            state = self._current()
        except BaseException:
            self.close()
            raise
        if is_writable:
            store.sweep(state)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files; what was committed is on the disk anyway."""
        with self._lock:
            self._store.close()
            self._is_open = self._is_sure = False
            self._state = None
            self._view = View(**self._options)

    @property
    def folder(self) -> Path:
        """Where the collection lies."""
        return self._store.folder

    @property
    def n_bits(self) -> int:
        """Bits in a code."""
        return self._current().n_bits

    def __len__(self) -> int:
        return len(self._current())

    def __contains__(self, item: object) -> bool:
        return bool(self._current().has(_inputs.ids_of([item]))[0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    # Views

    def _current(self) -> State:
        """The state as it stands on the disk."""
        with self._lock:
            if not self._is_open:
                raise InputError(f"the collection of {self.folder} is closed; open it again")
            known = self._state
            if known is not None and (self._is_sure or known.change == self._store.counters()[0]):
                return known
            self._state = self._store.load(known, is_verified=self._is_verified)
            self._is_sure = self._is_writable
            return self._state

    def refresh(self) -> Self:
        """See what was committed since; every other method does so as well."""
        self._current()
        return self

    def index(self, kind: str | None = None, mmap: bool = True) -> HammingIndex:
        """The collection at this moment as an index of its own, which nothing changes any more.

        Codes stay mapped, also when the collection drops their files, or are read into memory.
        Changes of the index stay in memory. Without a kind it has that of the collection.
        """
        options = self._options if kind is None else {**self._options, "kind": kind}
        return index_of(self._current(), is_mapped=bool(mmap), **options)

    def _searched(self) -> HammingIndex:
        with self._lock:
            return self._view.of(self._current())

    @property
    def ids(self) -> np.ndarray:
        """Ids of all items, ascending."""
        return self._searched().ids

    def codes(self, ids: Any = None) -> BinaryCodes:
        """The codes of some items, in the order of ids; of all, in ascending order of id."""
        return self._searched().codes(ids)

    def search(self, codes: Codes, k: int, ties: str = "id", **options: Any) -> Any:
        """The k nearest items of each query; see `HammingIndex.search`."""
        return self._searched().search(codes, k, ties, **options)

    def within(self, codes: Codes, radius: int, **options: Any) -> Ragged:
        """Every item at distance `radius` or less; see `HammingIndex.within`."""
        return self._searched().within(codes, radius, **options)

    # Copies and checks

    def snapshot(self, target: str | os.PathLike[str], *, link: bool = True) -> None:
        """Make the collection at this moment a second one, in a new or empty folder.

        Sealed segments never change, so both may share their files: with `link`, they are hard
        links wherever the file system can. A backup that is to outlive damage takes `link=False`.
        """
        while True:
            state = self._current()
            try:
                return _copies.copy_state(state, self.folder, Path(target), is_linked=bool(link))
            except FileFormatError:  # a file is missing, which is well if there is a new state
                if self._current() is state:
                    raise

    def info(self) -> dict[str, Any]:
        """Counts and sizes, ready for JSON."""
        return _audit.info(self._current(), self.folder)

    def check(self) -> dict[str, Any]:
        """Read and verify everything; what `info` tells, or a FileFormatError that names damage.

        Beside all checksums: SQLite's own check, the order of ids, and that no id is there twice.
        """
        with self._lock:
            self._current()
            return _audit.info(_audit.check(self._store), self.folder)
