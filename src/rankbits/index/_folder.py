"""The folder of a collection: what may lie in it, who may write, and what a failure is called.

collection.sqlite   manifest, marks of removal, codes not yet sealed (and its -wal and -shm)
segments/12.seg     a sealed segment
writer.lock         locked as long as somebody writes; it is always empty
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rankbits._files import one_line, sync_folder
from rankbits.errors import FileFormatError, InputError, RankbitsError

DATABASE = "collection.sqlite"
_LOCK = "writer.lock"
_SEGMENTS = "segments"
_OURS = {DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal", _LOCK, _SEGMENTS}
_TROUBLES = {  # of the machine rather than of the file; all else that SQLite says is damage
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}


def segment_path(folder: Path, number: int) -> Path:
    """The file of a sealed segment."""
    return folder / _SEGMENTS / f"{number}.seg"


def prepare(folder: Path) -> None:
    """Make the folder, or see that it holds nothing but a collection, whole or begun."""
    if not folder.parent.is_dir():
        raise InputError(f"folder must lie in an existing folder, there is no {folder.parent}")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"folder must not be a file, {folder} is one")
    with failures(folder, "made"):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
        foreign = sorted(set(os.listdir(folder)) - _OURS)
        if foreign:
            raise InputError(
                f"folder must be empty or hold a collection, {folder} holds {foreign[0]}"
            )
        (folder / _SEGMENTS).mkdir(exist_ok=True)
        sync_folder(folder)


def require_collection(folder: Path) -> None:
    """See that there is something to open."""
    if not (folder / DATABASE).is_file():
        raise InputError(
            f"folder must hold a collection, there is no {folder / DATABASE}; make one with "
            "Collection.create() or HammingIndex.save()"
        )


def has_segments(folder: Path) -> bool:
    """Whether segments lie there, whoever wrote them."""
    return any((folder / _SEGMENTS).glob("*.seg"))


def free_number(folder: Path, number: int) -> int:
    """The first from `number` on without a file: a change that failed may have left one."""
    while segment_path(folder, number).exists():
        number += 1
    return number


def sweep(folder: Path, kept: set[int]) -> None:
    """Delete segments that are in no manifest: a kill, or a commit, left them behind."""
    names = {segment_path(folder, number).name for number in kept}
    with suppress(OSError):  # what stays behind now is swept another time
        for path in (folder / _SEGMENTS).iterdir():
            if path.name not in names and ".seg" in path.name:
                path.unlink()


def lock_writer(folder: Path) -> IO[bytes]:
    """Become the one writer, until the file is closed or the process ends."""
    import fcntl  # not on every system, and only writers need it

    with failures(folder, "locked"):
        file = open(folder / _LOCK, "ab")  # noqa: SIM115  its owner closes it
    try:
        with failures(folder, "locked"):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except RankbitsError as error:
        file.close()
        if not isinstance(error.__cause__, BlockingIOError):
            raise
        raise InputError(
            f"folder must have one writer at a time, {folder} has one already; close it first, "
            "or open without writable=True to search"
        ) from None
    return file


def connect(folder: Path, mode: str) -> sqlite3.Connection:
    """A connection, tried out; where nothing can be written, a file without a log is still read."""
    address = (folder.absolute() / DATABASE).as_uri()
    with failures(folder, "opened"):
        try:
            return _tried(f"{address}?mode={mode}")
        except sqlite3.OperationalError:
            if mode != "ro" or (folder / f"{DATABASE}-wal").exists():
                raise
            return _tried(f"{address}?mode=ro&immutable=1")


def _tried(address: str) -> sqlite3.Connection:
    database = sqlite3.connect(
        address, uri=True, timeout=60.0, isolation_level=None, check_same_thread=False
    )
    try:
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def failures(folder: Path, done: str) -> Iterator[None]:
    """Turn what SQLite and the system say into errors of rankbits."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _TROUBLES:
            raise _trouble(folder, done, error) from error
        raise FileFormatError(f"{folder / DATABASE} is damaged: {one_line(error)}") from error
    except (UnicodeError, OverflowError) as error:  # Python, of texts and numbers in damaged rows
        raise FileFormatError(f"{folder / DATABASE} is damaged: {one_line(error)}") from error
    except OSError as error:
        raise _trouble(folder, done, error) from error


def _trouble(folder: Path, done: str, error: Exception) -> RankbitsError:
    return RankbitsError(
        f"{folder} could not be {done}: {one_line(error)}; it is as it was before this call"
    )
