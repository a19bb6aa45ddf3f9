"""The database of a collection: a state is read in one transaction and committed in another.

SQLite looks after order and durability (write-ahead log, synchronous=FULL). A segment file is on
the disk before the database names it, and is deleted after the database has let it go.

A COMMIT that fails may still have reached the disk: its frames can lie in the log, where SQLite
would find them after a crash. So nothing is deleted after a failure until the log certainly says
something else: after the next successful commit, or after the log was emptied.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rankbits._files import one_line
from rankbits.errors import FileFormatError, InputError, RankbitsError, UnknownOutcomeError
from rankbits.index.disk import layout, tables
from rankbits.index.disk.building import build_part
from rankbits.index.disk.connection import Connection, roll_back
from rankbits.index.disk.lock import WriterLock
from rankbits.index.disk.segment_file import FileSegment, read_segment
from rankbits.index.disk.tables import DamageError, PartRow
from rankbits.index.store.part import Part
from rankbits.index.store.segment import FACTOR_BITS
from rankbits.index.store.state import State


class Database:
    """The database of one collection, open to read or, under the lock, to write."""

    def __init__(self, folder: Path, lock: WriterLock | None = None) -> None:
        self.folder = folder = folder.absolute()  # the process may work elsewhere later
        self._lock = lock
        self._connection = Connection(folder, is_writer=lock is not None)
        try:
            layout.require_segments(folder)
        except BaseException:
            self._connection.close()
            raise
        self._rows: dict[int, PartRow] = {}  # of the parts of the state that was loaded last
        self._n_opened = 0  # of the connection that they were read by
        self._last_change = 0  # that was seen
        self._seals_all = False

    @classmethod
    def open(cls, folder: Path, *, is_writer: bool = False) -> "Database":
        """Open a collection that is there."""
        layout.require_collection(folder)
        if not is_writer:
            return cls(folder)
        layout.require_target(folder)
        lock = WriterLock(folder)
        try:
            return cls(folder, lock)
        except BaseException:
            lock.release()
            raise

    @property
    def version(self) -> int:
        """The version of the format."""
        return self._connection.version

    def require_process(self) -> None:
        """Refuse a process that was forked since it was opened."""
        self._connection.require_process()

    def close(self) -> None:
        """Let go of the file and of the lock."""
        self._connection.close()
        if self._lock:
            self._lock.release()

    # Reading

    def change(self) -> int:
        """The number of the last change that was committed."""
        with self._reading():
            change = tables.read_change(self._connection.current())
        if change < self._last_change:
            raise FileFormatError(
                f"{self.folder} has to be opened again: an older {layout.DATABASE} was put in its "
                f"place, with change {change}, after {self._last_change} had been read"
            )
        self._last_change = change
        return change

    def counters(self) -> tuple[int, int]:
        """The number of the last change, and that of the next part."""
        with self._reading():
            return tables.read_counters(self._connection.current())

    def load(self, known: State | None = None, *, verify: bool = True) -> State:
        """The state as it stands; what a known state has is taken from it.

        A writer may delete a file between the reading of its name and its opening: then there is a
        new state, which is read instead.
        """
        while True:
            change = self.change()
            try:
                with self._reading():
                    state = self._load_once(known, verify=verify)
                    is_outdated = self._connection.is_outdated()
            except FileFormatError:
                if self.change() == change:
                    raise
            else:
                if not is_outdated:
                    return state

    def _load_once(self, known: State | None, *, verify: bool) -> State:
        database = self._connection.current()
        database.execute("BEGIN")
        try:
            self._connection.examine_again(database)
            return self._read(database, known, verify=verify)
        finally:
            if database.in_transaction:
                database.execute("ROLLBACK")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            with layout.failures(self.folder, "read"):
                yield
        except DamageError as error:
            path = self.folder / layout.DATABASE
            raise FileFormatError(
                f"{path} is damaged: {one_line(error)}; restore it from a snapshot"
            ) from None

    def _read(self, database: sqlite3.Connection, known: State | None, *, verify: bool) -> State:
        manifest = tables.read_manifest(database, self.version)
        known_parts = {part.number: part for part in known.parts} if known else {}
        known_parts = {n: part for n, part in known_parts.items() if self._is_known(part)}
        parts = []
        for row in manifest.parts:
            before = known_parts.get(row.number)
            if before is not None and self._rows[row.number] == row:
                parts.append(before)
                continue
            segment = before.segment if before is not None else None
            if segment is None or self._rows[row.number][:2] != row[:2]:
                if row.header_crc is None:
                    segment = tables.read_codes(database, row, manifest.n_bits)
                else:
                    segment = self._read_file(row, manifest.n_bits, verify=verify)
            parts.append(Part(row.number, segment, row.n_alive, tables.read_alive(database, row)))
        self._rows = {row.number: row for row in manifest.parts}
        self._n_opened = self._connection.n_opened
        counters = manifest.next_id, manifest.next_part, manifest.change
        has_factors, side = tables.traits_of(self.version)
        if has_factors and manifest.n_bits <= FACTOR_BITS:
            raise DamageError(f"its codes would have {manifest.n_bits} bits with their factors")
        return State(manifest.n_bits, *counters, tuple(parts), manifest.model, has_factors, side)

    def _is_known(self, part: Part) -> bool:
        """Whether a part is as it was read.

        A file that was damaged may have been restored, and a database that was written by others
        may hold other codes.
        """
        is_in_file = isinstance(part.segment, FileSegment)
        if part.number not in self._rows or part.segment.is_damaged:
            return False
        return is_in_file or self._n_opened == self._connection.n_opened

    def _read_file(self, row: PartRow, n_bits: int, *, verify: bool) -> FileSegment:
        path = layout.segment_path(self.folder, row.number)
        segment = read_segment(path, verify=verify)
        if segment.n_bits != n_bits:
            raise FileFormatError(
                f"{path} must have codes of {n_bits} bits, it has {segment.n_bits}"
            )
        if (segment.header.n, segment.header.crc) != (row.n, row.header_crc):
            raise FileFormatError(f"{path} is another segment than the database names")
        return segment

    def require_integrity(self) -> None:
        """SQLite's own check of its file."""
        with layout.failures(self.folder, "read"):
            verdict = self._connection.current().execute("PRAGMA integrity_check").fetchone()[0]
        if verdict != "ok":
            path = self.folder / layout.DATABASE
            reason = str(verdict).splitlines()[-1]
            raise FileFormatError(f"{path} is damaged or cannot be read: {reason}")

    # Building parts

    def may_merge(self, part: Part) -> bool:
        """Merging writes a new file, so any part may be merged."""
        return True

    def build(self, number: int, parts: Sequence[Part]) -> Part:
        """What is left of parts as one; if it is large, in a new file that no state names yet."""
        return build_part(self.folder, number, parts, always_file=self._seals_all)

    @contextmanager
    def sealing(self) -> Iterator[None]:
        """Within this block every part that is built gets a file, however small."""
        self._seals_all = True
        try:
            yield
        finally:
            self._seals_all = False

    # Writing

    def commit(self, old: State | None, new: State) -> None:
        """Make a state the one that is there, in one transaction; without an old one, from nothing.

        If this returns, the new state is on the disk. If it raises an UnknownOutcomeError, either
        may be; if it raises anything else, the old one is.
        """
        database = self._begin(new.change - 1)
        try:
            with layout.failures(self.folder, "written"):
                self._require_files(old, new)
                tables.write_state(database, old, new)
                if self.version != tables.version_of(new):
                    database.execute(f"PRAGMA user_version = {tables.version_of(new)}")
        except BaseException:
            roll_back(database)
            raise
        self._finish(database)
        self._connection.version = tables.version_of(new)
        self._rows = {part.number: tables.row_of(part) for part in new.parts}
        self._delete_strays(new)

    def _begin(self, known_change: int) -> sqlite3.Connection:
        """Begin a transaction of the one writer, if the last change is the one that it knows."""
        with layout.failures(self.folder, "written"):
            self._require_lock()
            database = self._connection.current()
            try:
                database.execute("BEGIN IMMEDIATE")
                self._require_lock()
                self._connection.require_in_place()
                self._require_change(tables.read_change(database), known_change)
            except BaseException:
                roll_back(database)
                raise
        return database

    def _require_change(self, change: int, known_change: int) -> None:
        if change != known_change:
            raise InputError(
                f"{self.folder} has to be opened again: another process has written change "
                f"{change} to it, this one knows {known_change}; nothing was changed by this call"
            )

    def _require_lock(self) -> None:
        if self._lock is None:
            raise InputError(f"{self.folder} is open to read, not to write")
        self._lock.require()

    def _require_files(self, old: State | None, new: State) -> None:
        """New files are still where they were written: a second writer may have swept them."""
        before = set(old.parts) if old else set()
        for part in new.parts:
            path = layout.segment_path(self.folder, part.number)
            if part in before or not isinstance(part.segment, FileSegment):
                continue
            if not part.segment.is_at(path):
                raise InputError(
                    f"{path} is not what was written there, so another process is writing; nothing "
                    "was changed by this call"
                )

    def _finish(self, database: sqlite3.Connection) -> None:
        """End a transaction of the writer. It counts if all files lie at their names after it."""
        try:
            database.execute("COMMIT")
            self._connection.require_in_place()
        except (sqlite3.Error, OSError, InputError) as error:
            roll_back(database)
            raise UnknownOutcomeError(
                f"{self.folder} could not be written: {one_line(error)}; whether this change was "
                "saved is unknown: open the collection again after the storage works, and look"
            ) from error
        except BaseException:
            roll_back(database)
            raise
        finally:
            self._connection.note_write()

    # Files that no state names

    def sweep(self, state: State) -> None:
        """Delete files that earlier writers left, once the log is certain not to need them.

        Where a reader or a failure is in the way the files stay until the next time.
        """
        numbers = _numbers_of_files(state)
        with suppress(sqlite3.Error, OSError, RankbitsError):
            if layout.stray_files(self.folder, numbers) and self._connection.empty_log():
                database = self._begin(state.change)
                try:
                    self._delete_strays(state)
                finally:
                    roll_back(database)

    def _delete_strays(self, state: State) -> None:
        numbers = _numbers_of_files(state)
        with suppress(OSError):
            layout.delete(layout.stray_files(self.folder, numbers))


def _numbers_of_files(state: State) -> set[int]:
    """Of its parts: one in the database may have the number of a file that a failure left."""
    return {part.number for part in state.parts if isinstance(part.segment, FileSegment)}
