"""Rows of the SQLite file of a collection.

SQLite does not notice a flipped bit, so every row ends in a CRC-32 of its fields and every table
has its count elsewhere: a state is read as it was written, or not at all.
"""

import sqlite3
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankbits.index._state import CHUNK, Sealed, State

WORDS = CHUNK // 64  # of a chunk's marks
SCHEMA = """
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1), n_bits INTEGER, next_id INTEGER, next_segment INTEGER,
    change INTEGER, n_segments INTEGER, n_batches INTEGER, crc INTEGER);
CREATE TABLE segments (
    number INTEGER PRIMARY KEY, n INTEGER, n_alive INTEGER, header_crc INTEGER, crc INTEGER);
CREATE TABLE removed (
    segment INTEGER, chunk INTEGER, marks BLOB, crc INTEGER, PRIMARY KEY (segment, chunk));
CREATE TABLE pending (batch INTEGER PRIMARY KEY, ids BLOB, codes BLOB, crc INTEGER);
"""
_COLUMNS = {
    "state": "one, n_bits, next_id, next_segment, change, n_segments, n_batches, crc",
    "segments": "number, n, n_alive, header_crc, crc",
    "removed": "segment, chunk, marks, crc",
    "pending": "batch, ids, codes, crc",
}
Row = tuple[Any, ...]


def read_rows(database: sqlite3.Connection) -> dict[str, list[Row]]:
    """All rows of all tables at one moment."""
    database.execute("BEGIN")
    try:
        return {
            table: database.execute(
                f"SELECT {columns} FROM {table} ORDER BY 1, 2"  # noqa: S608  no input
            ).fetchall()
            for table, columns in _COLUMNS.items()
        }
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


def wrong_row(rows: dict[str, list[Row]]) -> str | None:
    """Names a row that is not as it was written, if there is one."""
    for table, found in rows.items():
        for row in found:
            if _crc(row[:-1]) != row[-1]:
                return f"row {row[0]!r} of table {table}"
    return None


def replace_rows(database: sqlite3.Connection, old: State | None, new: State) -> None:
    """Write what is new in a state, and delete what it lacks; without an old one, all of it."""
    if old is None:
        for table in _COLUMNS:
            database.execute(f"DELETE FROM {table}")  # noqa: S608  no input
    sealed = {s.number: s for s in old.sealed} if old else {}
    batches = {b.number: b for b in old.pending} if old else {}
    gone = [(number,) for number in sealed.keys() - {s.number for s in new.sealed}]
    database.executemany("DELETE FROM segments WHERE number = ?", gone)
    database.executemany("DELETE FROM removed WHERE segment = ?", gone)
    for mine in new.sealed:
        before = sealed.get(mine.number)
        if mine is not before:
            _put(database, "segments", mine.number, len(mine), mine.n_alive, mine.header.crc)
            _put_marks(database, mine, None if before is None else before.removed)
    gone = [(number,) for number in batches.keys() - {b.number for b in new.pending}]
    database.executemany("DELETE FROM pending WHERE batch = ?", gone)
    for batch in new.pending:
        if batch is not batches.get(batch.number):
            ids = batch.ids.astype("<i8", copy=False).tobytes()
            _put(database, "pending", batch.number, ids, batch.packed.tobytes())
    counts = len(new.sealed), len(new.pending)
    numbers = new.n_bits, new.next_id, new.next_segment, new.change
    _put(database, "state", 1, *numbers, *counts)


def _put_marks(database: sqlite3.Connection, sealed: Sealed, before: np.ndarray | None) -> None:
    if sealed.removed is None:
        return
    words = sealed.removed.reshape(-1, WORDS)
    known = np.zeros_like(words) if before is None else before.reshape(-1, WORDS)
    for chunk in np.flatnonzero((words != known).any(axis=1)).tolist():
        marks = words[chunk].astype("<u8", copy=False).tobytes()
        _put(database, "removed", sealed.number, chunk, marks)


def _put(database: sqlite3.Connection, table: str, *fields: Any) -> None:
    places = ", ".join("?" * (len(fields) + 1))
    database.execute(
        f"INSERT OR REPLACE INTO {table} VALUES ({places})",  # noqa: S608  no input
        (*fields, _crc(fields)),
    )


def _crc(fields: Sequence[Any]) -> int:
    """CRC-32 of fields one after the other: numbers in decimal and a space, blobs as they are."""
    crc = 0
    for field in fields:
        crc = zlib.crc32(field if isinstance(field, bytes) else b"%a " % (field,), crc)
    return crc
