"""The connection to the database of a collection, and what it takes before it trusts the file.

A folder may be anyone's. So the schema must be, word for word, one that rankbits writes: no views,
triggers or generated columns run. Whatever SQLite does for one statement is bounded.

Where a reader may not write, SQLite cannot make the files that it needs beside a log. A database
without a log is then read as it lies. Any other failure at opening is an error: a connection that
opened in another way than was asked for would outlive what went wrong.

A database that was written behind the connection, by a checkpoint of its writer or by a stranger,
is opened again to be read, so that nothing old is read from SQLite's cache; a writer refuses it.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rankbits._files import sync_file
from rankbits.errors import FileFormatError, InputError
from rankbits.index.disk import layout, tables
from rankbits.index.disk.open_files import OpenFiles, is_writable

APPLICATION = 0x52424954  # "RBIT"
_MAX_BLOB = 1 << 26  # bytes of a field: more than the codes of any part in the database
_STEPS = 100_000  # virtual instructions of SQLite between two looks at the limit
_MAX_LOOKS = 200
_BUSY_SECONDS = 60.0
_of_other_processes: list[sqlite3.Connection] = []  # closing one there would disturb its owner


class Connection:
    """A connection of one process to one database; it is made anew when it has to be."""

    def __init__(self, folder: Path, *, is_writer: bool) -> None:
        self._folder = folder.absolute()
        self._is_writer = is_writer
        self._process = os.getpid()
        self._limit = _WorkLimit()
        self.version = 0
        self.n_opened = 0  # how often: what was read before the last time may be of another file
        with layout.failures(folder, "opened"):
            self._files = OpenFiles(self._folder / layout.DATABASE)
            self._database: sqlite3.Connection | None = self._connected()

    def current(self) -> sqlite3.Connection:
        """The connection, which sees what was committed last."""
        if self._database is None:
            raise InputError(f"the collection of {self._folder} is closed; open it again")
        self.require_process()
        self._limit.n_looks = 0
        roll_back(self._database)  # Ctrl-C may have come before a transaction could be ended
        if self._files.is_written():
            self._database = self._reconnected(self._database)
        return self._database

    def require_in_place(self) -> None:
        """Raise unless the files that are open lie at their names."""
        self._files.is_written()

    def note_write(self) -> None:
        """Say that this connection may have written to the database just now."""
        with suppress(OSError, InputError):  # which the next use will tell
            self._files.note_content()

    def require_process(self) -> None:
        """Refuse a process that was forked: SQLite's connections do not survive that."""
        if os.getpid() != self._process:
            raise InputError(
                f"{self._folder} was opened by another process; open it again after a fork"
            )

    def examine_again(self, database: sqlite3.Connection) -> None:
        """Look at the tables again if a writer has converted them since the connection was made."""
        if _number(database, "PRAGMA user_version") != self.version:
            self.version = _examine(database, self._folder / layout.DATABASE)

    def is_outdated(self) -> bool:
        """Whether somebody else has written to the database since it was opened."""
        return self._files.is_written()

    def close(self) -> None:
        """Let go of the file."""
        if self._database is not None and os.getpid() != self._process:
            _of_other_processes.append(self._database)
        elif self._database is not None:
            self._database.close()
        self._database = None

    def empty_log(self) -> bool:
        """Move all of the log into the database and cut it to nothing, on the disk; if that can be.

        Frames of a commit that failed are gone then.
        """
        database = self.current()
        with suppress(sqlite3.Error, OSError):
            is_busy = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            self.note_write()
            if not is_busy:
                log = self._folder / f"{layout.DATABASE}-wal"
                sync_file(log)  # or its old length could come back after a power cut
                return True
        return False

    def _reconnected(self, database: sqlite3.Connection) -> sqlite3.Connection:
        if self._is_writer:
            raise FileFormatError(
                f"{self._folder} has to be opened again: another program has written to its "
                f"{layout.DATABASE}; nothing was changed by this call"
            )
        new = self._connected()
        database.close()
        return new

    def _connected(self) -> sqlite3.Connection:
        address = (self._folder / layout.DATABASE).as_uri()
        if self._is_writer:
            return self._examined(f"{address}?mode=rw")
        try:
            return self._examined(f"{address}?mode=ro")
        except sqlite3.OperationalError:
            if is_writable(self._folder) or self._files.has_log():
                raise
            database = self._examined(f"{address}?mode=ro&immutable=1")
            if self._files.has_log():
                database.close()
                raise
            return database

    def _examined(self, address: str) -> sqlite3.Connection:
        self.n_opened += 1
        self._files.note_content()  # before anything is read
        database = connect(address, self._limit)
        try:
            self.version = _examine(database, self._folder / layout.DATABASE)
            if self._is_writer:
                _require_writable(database, self.version)
            self._files.note_beside()
        except BaseException:
            database.close()
            raise
        return database


def connect(address: str, work_limit: Callable[[], bool] | None = None) -> sqlite3.Connection:
    """A connection that trusts nothing in the file."""
    database = sqlite3.connect(
        address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        if work_limit is not None:
            database.set_progress_handler(work_limit, _STEPS)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_BLOB)
        for setting in ("trusted_schema = OFF", "cell_size_check = ON", "synchronous = FULL"):
            database.execute(f"PRAGMA {setting}")
    except BaseException:
        database.close()
        raise
    return database


def _require_writable(database: sqlite3.Connection, version: int) -> None:
    """Raise unless it can be written: what SQLite cannot open to write, it opens to read.

    Only a statement that writes tells; it is taken back.
    """
    database.execute("BEGIN IMMEDIATE")
    try:
        database.execute(f"PRAGMA user_version = {version}")
    finally:
        roll_back(database)


def roll_back(database: sqlite3.Connection) -> None:
    """End a transaction, if there is one, with nothing changed."""
    if database.in_transaction:
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")


class _WorkLimit:
    """Stops statements that take too long: an endless query of a hostile file."""

    def __init__(self) -> None:
        self.n_looks = 0

    def __call__(self) -> bool:
        self.n_looks += 1
        return self.n_looks > _MAX_LOOKS


def _examine(database: sqlite3.Connection, path: Path) -> int:
    """The version of the format of a database that is one of rankbits, and nothing more."""
    if _number(database, "PRAGMA application_id") != APPLICATION:
        raise FileFormatError(f"{path} is no collection of rankbits")
    version = _number(database, "PRAGMA user_version")
    if version not in tables.VERSIONS:
        raise FileFormatError(
            f"{path} has version {version} of the format, this rankbits reads "
            f"{', '.join(map(str, sorted(tables.VERSIONS)))}; update rankbits"
        )
    stored = database.execute("SELECT type, name, sql FROM sqlite_master LIMIT 100").fetchall()
    if {_normal(*row) for row in stored} != _expected(tables.SCHEMA):
        raise FileFormatError(f"{path} is damaged: its tables are not those of a collection")
    return version


def _number(database: sqlite3.Connection, query: str) -> int:
    return int(database.execute(query).fetchone()[0])


def _expected(schema: tuple[str, ...]) -> set[tuple[str, str, str]]:
    expected = {_normal("table", statement.split()[2], statement) for statement in schema}
    return expected | {("index", "sqlite_autoindex_removed_1", "")}


def _normal(kind: object, name: object, statement: object) -> tuple[str, str, str]:
    return str(kind), str(name), " ".join(str(statement or "").split())
