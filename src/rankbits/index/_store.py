"""The files of a collection: a state is read in one transaction and committed in another.

SQLite looks after order and durability (write-ahead log, synchronous=FULL). A segment file is on
the disk before the manifest names it, and is deleted after the manifest has let it go.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np

from rankbits.codes import MAX_BITS
from rankbits.errors import FileFormatError, InputError
from rankbits.index import _folder
from rankbits.index._merge import Source, extent, merged_chunks
from rankbits.index._rows import SCHEMA, WORDS, Row, read_rows, replace_rows, wrong_row
from rankbits.index._segment import MAX_ROWS
from rankbits.index._segment_file import (
    Header,
    map_segment,
    open_segment,
    read_header,
    verify,
    write_segment,
)
from rankbits.index._state import Batch, Sealed, State, no_marks

VERSION = 1
_APPLICATION = 0x52424954  # "RBIT"


class Store:
    """The files of one collection, open to read or, under the lock, to write."""

    def __init__(self, folder: Path, mode: str, lock: IO[bytes] | None) -> None:
        self.folder = folder
        self._lock = lock
        self._database = _folder.connect(folder, mode)

    # Opening

    @classmethod
    def open(cls, folder: Path, *, is_writer: bool) -> "Store":
        """Open a collection that is there."""
        _folder.require_collection(folder)
        if is_writer:
            return cls._opened(folder, "rw", _folder.lock_writer(folder))
        return cls._opened(folder, "ro", None)

    @classmethod
    def create(cls, folder: Path, *, may_replace: bool = False) -> "Store":
        """Begin a collection, or open one whose content is to be replaced."""
        _folder.prepare(folder)
        store = cls._opened(folder, "rwc", _folder.lock_writer(folder))
        try:
            store._require_sound(may_replace=may_replace)
        except BaseException:
            store.close()
            raise
        return store

    def _require_sound(self, *, may_replace: bool) -> None:
        self.integrity()
        if self.counters()[0] and not may_replace:
            raise InputError(
                f"folder must not hold a collection yet, {self.folder} does; use Collection.open()"
            )

    @classmethod
    def _opened(cls, folder: Path, mode: str, lock: IO[bytes] | None) -> "Store":
        try:
            store = cls(folder, mode, lock)
        except BaseException:
            if lock:
                lock.close()
            raise
        try:
            with _folder.failures(folder, "opened"):
                store._prepare(mode)
        except BaseException:
            store.close()
            raise
        return store

    def _prepare(self, mode: str) -> None:
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute("PRAGMA cell_size_check = ON")
        if mode == "rwc" and not self._number("SELECT count(*) FROM sqlite_master"):
            self._begin()
        path = self.folder / _folder.DATABASE
        if self._number("PRAGMA application_id") != _APPLICATION:
            raise FileFormatError(f"{path} is no collection of rankbits, or was never finished")
        version = self._number("PRAGMA user_version")
        if version != VERSION:
            raise FileFormatError(
                f"{path} has version {version} of the format, this rankbits reads {VERSION}"
            )

    def _begin(self) -> None:
        """An empty file becomes a collection whose first state is still to come."""
        if _folder.has_segments(self.folder):
            raise FileFormatError(
                f"{self.folder} is damaged: it holds segments, but nothing in {_folder.DATABASE}"
            )
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA.split(";"):
            self._database.execute(statement)
        self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._database.execute(f"PRAGMA user_version = {VERSION}")
        self._database.execute("COMMIT")

    def _number(self, query: str) -> int:
        return int(self._database.execute(query).fetchone()[0])

    def close(self) -> None:
        """Let go of the file and of the lock."""
        self._database.close()
        if self._lock:
            self._lock.close()

    # Reading

    def counters(self) -> tuple[int, int]:
        """How many changes there were, 0 before the first state, and the next segment's number."""
        with _folder.failures(self.folder, "read"):
            row = self._database.execute("SELECT change, next_segment FROM state").fetchone()
        return row or (0, 1)

    def load(self, known: State | None = None, *, is_verified: bool = True) -> State:
        """The state as it stands; segments that a known state has are not verified again.

        A writer may delete a file between the reading of the manifest and the opening of the file:
        then there is a new manifest.
        """
        while True:
            with _folder.failures(self.folder, "read"):
                rows = read_rows(self._database)
            wrong = wrong_row(rows)
            if wrong:
                raise self._damage(f"{wrong} does not match its checksum")
            if not rows["state"]:
                raise InputError(
                    f"folder must hold a collection, that in {self.folder} was never finished; "
                    "create or save it again"
                )
            try:
                return self._state(rows, known, is_verified=is_verified)
            except FileFormatError:
                if self.counters()[0] == rows["state"][0][4]:
                    raise

    def _state(
        self, rows: dict[str, list[Row]], known: State | None, *, is_verified: bool
    ) -> State:
        _, n_bits, next_id, next_segment, change, n_segments, n_batches, _ = rows["state"][0]
        if not 1 <= n_bits <= MAX_BITS:
            raise self._damage(f"codes of {n_bits} bits cannot be")
        if (n_segments, n_batches) != (len(rows["segments"]), len(rows["pending"])):
            raise self._damage("it lacks rows of segments or pending")
        if {row[0] for row in rows["removed"]} - {row[0] for row in rows["segments"]}:
            raise self._damage("it has marks of removal of a segment that is not there")
        before = {sealed.number: sealed for sealed in known.sealed} if known else {}
        sealed = []
        for row in rows["segments"]:
            number, n, n_alive, header_crc, _ = row
            old = before.get(number)
            if old and old.n_alive == n_alive:  # marks are only ever added
                sealed.append(old)
                continue
            new = old or self._mapped(number, n_bits, n, header_crc, is_verified=is_verified)
            marks = [mark for mark in rows["removed"] if mark[0] == number]
            sealed.append(self._marked(new, n_alive, marks))
        pending = tuple(_batch_of(row, -(-n_bits // 8)) for row in rows["pending"])
        return State(n_bits, next_id, next_segment, change, tuple(sealed), pending)

    def _mapped(
        self, number: int, n_bits: int, n: int, header_crc: int, *, is_verified: bool
    ) -> Sealed:
        path = _folder.segment_path(self.folder, number)
        with _folder.failures(self.folder, "read"), open_segment(path) as file:
            header = read_header(file)
            if header.n_bits != n_bits:
                raise FileFormatError(
                    f"{path} must have codes of {n_bits} bits, has {header.n_bits}"
                )
            if (header.n, header.crc) != (n, header_crc):
                raise FileFormatError(f"{path} is another segment than the manifest names")
            if is_verified:
                verify(file, header)
            return Sealed(number, header, map_segment(file, header), n)

    def _marked(self, sealed: Sealed, n_alive: int, marks: list[Row]) -> Sealed:
        removed = no_marks(len(sealed))
        for _, chunk, words, _ in marks:
            removed[chunk * WORDS : (chunk + 1) * WORDS] = np.frombuffer(words, "<u8")
        if len(sealed) - int(np.bitwise_count(removed).sum()) != n_alive:
            raise self._damage(f"it lacks marks of removal of segment {sealed.number}")
        header, segment = sealed.header, sealed.segment
        return Sealed(sealed.number, header, segment, n_alive, removed if marks else None)

    def _damage(self, what: str) -> FileFormatError:
        path = self.folder / _folder.DATABASE
        return FileFormatError(f"{path} is damaged: {what}; restore it from a snapshot")

    def integrity(self) -> None:
        """SQLite's own check of its file."""
        with _folder.failures(self.folder, "read"):
            found = self._database.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            raise self._damage(str(found).splitlines()[-1])

    # Writing

    def write(self, n_bits: int, number: int, sources: Sequence[Source]) -> Sealed | None:
        """Merge sources into a new segment file, which no manifest names yet; None if empty."""
        n, first, last = extent(sources)
        if n == 0:
            return None
        if n > MAX_ROWS:
            raise InputError(f"a segment must have {MAX_ROWS} items at most, this would have {n}")
        with _folder.failures(self.folder, "written"):
            number = _folder.free_number(self.folder, number)
            path = _folder.segment_path(self.folder, number)
            header = Header(n_bits, n, first, last, is_range=last - first == n - 1)
            header = write_segment(path, header, merged_chunks(sources))
            with open_segment(path) as file:
                return Sealed(number, header, map_segment(file, header), n)

    def commit(self, old: State | None, new: State) -> None:
        """Make a state the one that is there, in one transaction; without an old one, from nothing.

        If this returns, the new state is on the disk; if it raises, the old one is.
        """
        with _folder.failures(self.folder, "written"):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                replace_rows(self._database, old, new)
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
        self.sweep(new)

    def sweep(self, state: State) -> None:
        """Delete files that the committed state does not name."""
        _folder.sweep(self.folder, {sealed.number for sealed in state.sealed})


def _batch_of(row: Row, width: int) -> Batch:
    number, ids, codes, _ = row
    array = np.frombuffer(ids, "<i8").astype(np.int64, copy=False)
    return Batch(number, array, np.frombuffer(codes, np.uint8).reshape(-1, width))
