"""The folder of a collection: what lies in it, what may be deleted, and what a failure is called.

collection.sqlite   parts, marks of removed items, parts too small for a file (and its -wal, -shm)
segments/12.seg     the segment of part 12
writer.lock         locked as long as somebody writes; it is always empty

Names that begin with a dot are files not yet finished; their process renames them when they are.
"""

import os
import re
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rankbits._files import one_line, status_of, sync_folder
from rankbits.errors import FileFormatError, InputError, RankbitsError

DATABASE = "collection.sqlite"
LOCK = "writer.lock"
SEGMENTS = "segments"
_OURS = re.compile(
    rf"{re.escape(DATABASE)}(-wal|-shm|-journal)?|{re.escape(LOCK)}|{SEGMENTS}"
    rf"|\.{re.escape(DATABASE)}\.[0-9a-f]{{8}}(-wal|-shm|-journal)?"
)
_UNFINISHED = re.compile(rf"\.{re.escape(DATABASE)}\.[0-9a-f]{{8}}(-wal|-shm|-journal)?")
_SEGMENT = re.compile(r"([1-9][0-9]{0,17})\.seg")
_UNFINISHED_SEGMENT = re.compile(r"\.[1-9][0-9]{0,17}\.seg\.[0-9a-f]{8}")
_MACHINE_ERRORS = {  # of the machine rather than of the file; all else that SQLite says is damage
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}


def segment_path(folder: Path, number: int) -> Path:
    """The file of a segment."""
    return folder / SEGMENTS / f"{number}.seg"


def new_unfinished_database(folder: Path) -> Path:
    """A name for a database that is being made."""
    return folder / f".{DATABASE}.{secrets.token_hex(4)}"


def require_target(folder: Path) -> None:
    """Refuse a folder in which a collection cannot be written; nothing is changed."""
    with failures(folder, "read"):
        if not folder.parent.is_dir():
            raise InputError(f"folder must lie in an existing folder, there is no {folder.parent}")
        if folder.exists() and not folder.is_dir():
            raise InputError(f"folder must not be a file, {folder} is one")
        names = os.listdir(folder) if folder.exists() else []
        segments = status_of(folder / SEGMENTS)
    foreign = sorted(name for name in names if not _OURS.fullmatch(name))
    if foreign:
        raise InputError(f"folder must be empty or hold a collection, {folder} holds {foreign[0]}")
    if segments and stat.S_ISLNK(segments.st_mode):
        raise InputError(
            f"{folder / SEGMENTS} must be a folder, it is a link; a collection is not written "
            "through links"
        )


def prepare(folder: Path) -> None:
    """Make the folder and the one of its segments."""
    with failures(folder, "created"):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
        (folder / SEGMENTS).mkdir(exist_ok=True)
        sync_folder(folder)


def require_collection(folder: Path) -> None:
    """Refuse a folder without a database, and names that are not what a collection makes them."""
    names = [f"{DATABASE}{ending}" for ending in ("", "-wal", "-shm", "-journal")]
    with failures(folder, "read"):
        database, *beside = (status_of(folder / name) for name in names)
    if database is None or not stat.S_ISREG(database.st_mode):
        raise InputError(
            f"folder must hold a collection, there is no {folder / DATABASE}; make one with "
            "Collection.create() or HammingIndex.save()"
        )
    for name, status in zip(names[1:], beside, strict=True):
        if status and not stat.S_ISREG(status.st_mode):
            raise FileFormatError(f"{folder / name} must be a file of SQLite, it is something else")


def has_database(folder: Path) -> bool:
    """Whether something has the name of a collection's database."""
    with failures(folder, "read"):
        return status_of(folder / DATABASE) is not None


def require_segments(folder: Path) -> None:
    """Refuse a collection without the folder of its segments."""
    with failures(folder, "read"), suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISDIR(os.stat(folder / SEGMENTS).st_mode):  # readers may follow a link
            return
    raise FileFormatError(f"{folder} is damaged: it has no folder {SEGMENTS}")


def _is_file(path: Path) -> bool:
    status = status_of(path)
    return status is not None and stat.S_ISREG(status.st_mode)


def free_number(folder: Path, number: int) -> int:
    """The first number from this one on without a file: a change that failed may have left one."""
    while status_of(segment_path(folder, number)):
        number += 1
    return number


def stray_files(folder: Path, numbers: set[int]) -> list[Path]:
    """Segment files of other parts than these, whole or not: a kill or a commit left them.

    Only names that a collection gives its own files, and only plain files, are looked at.
    """
    strays = []
    for entry in os.scandir(folder / SEGMENTS):
        match = _SEGMENT.fullmatch(entry.name)
        is_ours = bool(match or _UNFINISHED_SEGMENT.fullmatch(entry.name))
        is_named = match is not None and int(match[1]) in numbers
        if is_ours and not is_named and entry.is_file(follow_symlinks=False):
            strays.append(Path(entry.path))
    return strays


def delete(paths: list[Path]) -> None:
    """Delete files; one that cannot be deleted now is left for another time."""
    for path in paths:
        with suppress(OSError):
            path.unlink()


def unfinished_databases(folder: Path) -> list[Path]:
    """Databases that a killed process was making."""
    names = [name for name in os.listdir(folder) if _UNFINISHED.fullmatch(name)]
    return [folder / name for name in sorted(names) if _is_file(folder / name)]


@contextmanager
def failures(folder: Path, done: str) -> Iterator[None]:
    """Turn what SQLite and the system say into errors of rankbits; nothing was changed by then."""
    try:
        yield
    except sqlite3.Error as error:
        if is_machine_error(error):
            raise _failed(folder, done, error) from error
        is_corrupt = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT
        state = "is damaged or cannot be read" if is_corrupt else "is damaged"  # EIO is CORRUPT too
        raise FileFormatError(f"{folder / DATABASE} {state}: {one_line(error)}") from error
    except (UnicodeError, OverflowError) as error:  # Python, of texts and numbers in damaged rows
        raise FileFormatError(f"{folder / DATABASE} is damaged: {one_line(error)}") from error
    except OSError as error:
        raise _failed(folder, done, error) from error


def is_machine_error(error: sqlite3.Error) -> bool:
    """Whether an error of SQLite is the machine's fault rather than the file's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _MACHINE_ERRORS


def _failed(folder: Path, done: str, error: Exception) -> RankbitsError:
    return RankbitsError(
        f"{folder} could not be {done}: {one_line(error)}; it is as it was before this call"
    )
