"""Collection: codes by id in a folder, changed by one process and searched by many.

A small change is rows of a SQLite database. When enough codes have gathered there, or many come at
once, they become a segment file; one commit then names the new file and drops what went into it. A
change is on the disk as a whole or not at all.
"""

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from rankbits.errors import InputError
from rankbits.index.disk import Database, write_collection
from rankbits.index.disk.check import check, describe
from rankbits.index.disk.segment_file import FileSegment
from rankbits.index.engines.searcher import Searcher
from rankbits.index.hamming import HammingIndex, empty_state, in_memory
from rankbits.index.searchable import Change, Result, Searchable
from rankbits.index.store import changes
from rankbits.index.store.state import State


class Collection(Searchable):
    """Codes on disk, by id, that change while they are searched.

    One process writes, any number of others read; each sees the collection as it was at one
    moment. When a change returns, it is on the disk: a kill or a power cut after it cannot undo
    it, and one during it leaves all of it or nothing. A damaged file is refused, not served.

    Make one with `create` or `open`, and close it, or use it in a `with` block. Threads may share
    an object; processes may not: open again after a fork.

    Parameters
    ----------
    database, searcher, is_writable, verify : Database, Searcher, bool and bool
        Values that `create` and `open` pass on; call one of them instead of the constructor.

    >>> import tempfile
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Collection.create(folder.name, n_bits=8) as collection:
    ...     collection.add(np.array([[0b00000000], [0b00000011]], np.uint8))
    ...     collection.upsert(np.array([[0b11110000]], np.uint8), ids=[1])
    array([0, 1])
    >>> with Collection.open(folder.name) as collection:
    ...     distances, ids = collection.search(np.array([[0b11110001]], np.uint8), k=2)
    >>> distances.tolist(), ids.tolist()
    ([[1, 5]], [[1, 0]])
    >>> folder.cleanup()
    """

    def __init__(
        self, database: Database, searcher: Searcher, *, is_writable: bool, verify: bool
    ) -> None:
        super().__init__(searcher)
        self._database = database
        self._is_writable = is_writable
        self._verifies = verify
        self._lock = threading.RLock()
        self._state: State | None = None  # the last that was seen
        self._is_sure = False  # whether a writer knows that no other state is on the disk
        self._is_open = True
        try:
            state = self._current()
            if is_writable:
                database.sweep(state)
        except BaseException:
            self.close()
            raise

    # Opening

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        n_bits: int,
        kind: str = "auto",
        *,
        n_threads: int | None = None,
        factors: bool = False,
        **options: Any,
    ) -> "Collection":
        """Make an empty one, open to write.

        Parameters
        ----------
        folder : str or path-like
            Folder of the collection, which must be new or empty.
        n_bits : int, 1 to 4096
            Code length.
        factors : bool, default=False
            Whether items have two bytes of factors, as in `HammingIndex`.
        kind, n_threads, options : str, int or None, and keyword arguments
            How the collection searches, as in `HammingIndex`.
        """
        searcher = Searcher(kind, n_threads, options)
        state = empty_state(n_bits, factors)
        database = write_collection(Path(folder), state)
        return cls(database, searcher, is_writable=True, verify=True)

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        writable: bool = False,
        *,
        verify: bool = True,
        kind: str = "auto",
        n_threads: int | None = None,
        **options: Any,
    ) -> "Collection":
        """Open a collection.

        Parameters
        ----------
        folder : str or path-like
            Folder of the collection.
        writable : bool, default=False
            Whether the collection is to be changed. Only one process at a time can open it to
            write; readers are never kept out.
        verify : bool, default=True
            Whether segment files are compared with their checksums when they are opened, which
            reads every file once. Without it, opening is immediate, and damage inside of a segment
            goes unnoticed until `check`.
        kind, n_threads, options : str, int or None, and keyword arguments
            How the collection searches, as in `HammingIndex`.
        """
        searcher = Searcher(kind, n_threads, options)
        database = Database.open(Path(folder), is_writer=bool(writable))
        return cls(database, searcher, is_writable=bool(writable), verify=bool(verify))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files; what was committed is on the disk anyway."""
        with self._lock:
            if self._is_open:
                self._database.close()
            self._is_open = self._is_sure = False
            self._state = None
            self._searcher.clear()

    @property
    def folder(self) -> Path:
        """Where the collection lies."""
        return self._database.folder

    def __repr__(self) -> str:
        return f"Collection({str(self.folder)!r})"

    # States

    def _current(self) -> State:
        """The state as it stands on the disk."""
        with self._lock:
            if not self._is_open:
                raise InputError(f"the collection of {self.folder} is closed; open it again")
            self._database.require_process()
            known = self._state
            if known is None or known.is_damaged or not self._is_last(known):
                self._state = known = self._database.load(known, verify=self._verifies)
                self._is_sure = self._is_writable
            return known

    def _is_last(self, known: State) -> bool:
        """Whether no change has followed a state."""
        return self._is_sure or known.change == self._database.change()

    def _apply(self, change: Change[Result], *sources: Any) -> Result:
        with self._lock:
            if not self._is_writable:
                raise InputError(
                    f"writable must be True to change {self.folder}; open it with writable=True"
                )
            with self._moment(*sources) as state:
                new, result = change(state, self._database)
            if new is not state:
                new = replace(new, change=state.change + 1)
                self._is_sure = False
                self._database.commit(state, new)
                self._state, self._is_sure = new, True
        return result

    def refresh(self) -> Self:
        """See what was committed since; every other method does so as well."""
        self._current()
        return self

    def seal(self) -> None:
        """Write codes that are still in the database to a segment file, however few."""

        def sealed(state: State, builder: changes.Builder) -> tuple[State, None]:
            rows = [part for part in state.parts if not isinstance(part.segment, FileSegment)]
            with self._database.sealing():
                return (changes.rebuilt(state, rows, builder) if rows else state), None

        self._apply(sealed)

    # Copies and checks

    def index(self, kind: str | None = None, mmap: bool = True, **options: Any) -> HammingIndex:
        """The collection at this moment as an index of its own, which nothing changes any more.

        Codes stay mapped, also when the collection drops their files, or are read into memory.
        Changes of the index stay in memory. Without a kind it has that of the collection.
        """
        state = self._current()
        searcher = self._searcher.like(kind, options.pop("n_threads", None), options)
        return HammingIndex.of_state(state if mmap else in_memory(state), searcher)

    def snapshot(self, target: str | os.PathLike[str], *, link: bool = True) -> None:
        """Make the collection at this moment a second one, in a new or empty folder.

        Segment files never change, so both may share them: with `link`, they are hard links
        wherever the file system can. A backup that is to outlive damage takes `link=False`.
        """
        write_collection(Path(target), self._current(), may_link=bool(link)).close()

    def info(self) -> dict[str, Any]:
        """Counts and sizes, ready for JSON."""
        return describe(self._current(), self.folder, self._database.version)

    def check(self) -> dict[str, Any]:
        """Read and verify everything; what `info` tells, or a FileFormatError that names damage.

        Beside all checksums: SQLite's own check, the order of ids, and that no id is there twice.
        """
        with self._lock:
            self._current()
            return describe(check(self._database), self.folder, self._database.version)
