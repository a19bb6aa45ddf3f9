"""Whole collections in one step: written from a state, read as a state.

Segment files come first; then one rename makes a new database, or one commit changes the one that
is there. Until then a folder holds the old collection, or none.
"""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rankbits._files import open_plain, sync_file, sync_folder
from rankbits.errors import FileFormatError, InputError, RankbitsError
from rankbits.index.disk import layout, tables
from rankbits.index.disk.building import build_part
from rankbits.index.disk.connection import APPLICATION, connect
from rankbits.index.disk.database import Database
from rankbits.index.disk.lock import WriterLock
from rankbits.index.disk.segment_file import FileSegment, copy_segment, read_segment
from rankbits.index.store.part import Part
from rankbits.index.store.state import State


def read_collection(folder: Path) -> State:
    """The state of a collection, verified and mapped."""
    database = Database.open(folder)
    try:
        return database.load()
    finally:
        database.close()


def require_target(folder: Path) -> None:
    """Refuse a folder that `write_collection` would refuse to replace; nothing is changed."""
    layout.require_target(folder)
    if layout.has_database(folder):
        Database.open(folder, is_writer=True).close()


def write_collection(
    folder: Path, state: State, *, may_replace: bool = False, may_link: bool = False
) -> Database:
    """Make a state the content of a folder, which is returned open to write.

    Parameters
    ----------
    folder : new, empty, or a collection if it may be replaced
    may_link : whether files of the state may become links instead of copies
    """
    layout.require_target(folder)
    layout.prepare(folder)
    if layout.has_database(folder):
        if not may_replace:
            Database.open(folder).close()  # which names anything that is no collection
            raise InputError(
                f"folder must not hold a collection yet, {folder} does; use Collection.open()"
            )
        return _replaced(folder, state, may_link)
    lock = WriterLock(folder)
    try:
        with layout.failures(folder, "written"):
            _clear(folder)
            _make(folder, state, may_link)
        return Database(folder, lock)
    except BaseException:
        lock.release()
        raise


def _replaced(folder: Path, state: State, may_link: bool) -> Database:
    database = Database.open(folder, is_writer=True)
    try:
        database.require_integrity()
        change, first = database.counters()
        with layout.failures(folder, "written"):
            parts = _written_parts(folder, state, first, may_link)
        next_part = max([first, *(part.number + 1 for part in parts)])
        content = replace(state, parts=parts, next_part=next_part, change=change + 1)
        database.commit(None, content)
    except BaseException:
        database.close()
        raise
    return database


def _written_parts(folder: Path, state: State, number: int, may_link: bool) -> tuple[Part, ...]:
    """The parts of a state with files in this folder; no collection names them yet."""
    parts = []
    for part in state.parts:
        number = layout.free_number(folder, number)
        if isinstance(part.segment, FileSegment):
            path = layout.segment_path(folder, number)
            copy_segment(part.segment, path, may_link=may_link)
            parts.append(replace(part, number=number, segment=read_segment(path, verify=False)))
        else:
            parts.append(build_part(folder, number, [part]))
        number = parts[-1].number + 1
    sync_folder(folder / layout.SEGMENTS)
    return tuple(parts)


def _clear(folder: Path) -> None:
    """Delete what an unfinished creation left; its database, which tells of it, goes last."""
    strays = layout.stray_files(folder, set())
    unfinished = layout.unfinished_databases(folder)
    if strays and not unfinished:
        raise FileFormatError(
            f"{folder} is damaged: it holds segments, but no {layout.DATABASE}; restore that from "
            "a snapshot, or remove the folder"
        )
    layout.delete(strays)
    layout.delete(unfinished)


def _make(folder: Path, state: State, may_link: bool) -> None:
    """A new collection, whose database takes its name when all is complete."""
    path = layout.new_unfinished_database(folder)
    try:
        # SQLite itself would create it for its owner alone to change, whatever the umask allows;
        # its log gets the permissions of the database
        os.close(open_plain(path, os.O_RDWR | os.O_EXCL))
        database = connect(f"{path.absolute().as_uri()}?mode=rw")
        try:
            database.execute("PRAGMA journal_mode = OFF")  # it is not there before it is complete
            for statement in tables.SCHEMA:
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {APPLICATION}")
            database.execute(f"PRAGMA user_version = {tables.version_of(state)}")
            sync_folder(folder)
            parts = _written_parts(folder, state, 1, may_link)
            next_part = max([1, *(part.number + 1 for part in parts)])
            database.execute("BEGIN IMMEDIATE")
            content = replace(state, parts=parts, next_part=next_part, change=1)
            tables.write_state(database, None, content)
            database.execute("COMMIT")
            database.execute("PRAGMA journal_mode = WAL")
        finally:
            database.close()
        sync_file(path)
        os.rename(path, folder / layout.DATABASE)
    except BaseException:
        with suppress(OSError, RankbitsError):
            _clear(folder)
        raise
    sync_folder(folder)
