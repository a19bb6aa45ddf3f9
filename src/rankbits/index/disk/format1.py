"""Rows of collections of format 1, as rankbits 0.1 wrote them before parts were one thing.

There were sealed segments in files, and codes not yet sealed in batches in the database; those
become one part here. Collections of format 1 can be read and be upgraded, not changed.
"""

import sqlite3
from typing import Any

import numpy as np

from rankbits.index.disk.tables import (
    DamageError,
    Manifest,
    PartRow,
    Row,
    alive_of,
    crc_of,
    require_numbers,
    require_sound,
    segment_of,
)
from rankbits.index.store.segment import Segment

VERSION = 1
SCHEMA = (
    "CREATE TABLE state (\n    one INTEGER PRIMARY KEY CHECK (one = 1), n_bits INTEGER, next_id "
    "INTEGER, next_segment INTEGER,\n    change INTEGER, n_segments INTEGER, n_batches INTEGER, "
    "crc INTEGER)",
    "CREATE TABLE segments (\n    number INTEGER PRIMARY KEY, n INTEGER, n_alive INTEGER, "
    "header_crc INTEGER, crc INTEGER)",
    "CREATE TABLE removed (\n    segment INTEGER, chunk INTEGER, marks BLOB, crc INTEGER, "
    "PRIMARY KEY (segment, chunk))",
    "CREATE TABLE pending (batch INTEGER PRIMARY KEY, ids BLOB, codes BLOB, crc INTEGER)",
)
_COLUMNS = {
    "state": "one, n_bits, next_id, next_segment, change, n_segments, n_batches, crc",
    "segments": "number, n, n_alive, header_crc, crc",
    "removed": "segment, chunk, marks, crc",
    "pending": "batch, ids, codes, crc",
}


def read_manifest(database: sqlite3.Connection, version: int) -> Manifest:
    """The rows of the state and of its parts; batches are the last part."""
    states = _rows(database, "state")
    if len(states) != 1:
        raise DamageError("it has no state")
    (_, n_bits, next_id, next_segment, change, n_segments, n_batches, _) = states[0]
    parts = [PartRow(*row) for row in _rows(database, "segments")]
    batches = _rows(database, "pending")
    if n_batches != len(batches):
        raise DamageError(f"it has {len(batches)} batches of {n_batches}")
    require_numbers("state", (n_segments, next_segment))
    n_parts = n_segments
    if batches:
        ids, codes = _joined(batches)
        part = PartRow(next_segment, len(ids) // 8, len(ids) // 8, None, crc_of((ids, codes)))
        parts, n_parts, next_segment = [*parts, part], n_segments + 1, next_segment + 1
    manifest = Manifest(n_bits, next_id, next_segment, change, tuple(parts))
    require_sound(manifest, n_parts)
    return manifest


def read_codes(database: sqlite3.Connection, part: PartRow, n_bits: int) -> Segment:
    """The segment of all batches, whose ids are in any order."""
    ids, codes = _joined(_rows(database, "pending"))
    width = -(-n_bits // 8)
    if len(ids) % 8 or len(ids) // 8 != part.n or len(codes) != width * part.n:
        raise DamageError("batches do not have as many codes as ids")
    array = np.frombuffer(ids, "<i8")
    order = np.argsort(array, kind="stable")
    packed = np.frombuffer(codes, np.uint8).reshape(-1, width)[order]
    return segment_of(array[order].tobytes(), packed.tobytes(), part, n_bits)


def read_alive(database: sqlite3.Connection, part: PartRow) -> np.ndarray | None:
    """Words of the rows that are left of a part, None for all."""
    rows = _rows(database, "removed") if part.header_crc is not None else []
    return alive_of([row for row in rows if row[0] == part.number], part)


def _joined(batches: list[Row]) -> tuple[bytes, bytes]:
    columns: tuple[list[Any], list[Any]] = ([row[1] for row in batches], [r[2] for r in batches])
    if not all(isinstance(field, bytes) for column in columns for field in column):
        raise DamageError("ids and codes of batches must be bytes")
    return b"".join(columns[0]), b"".join(columns[1])


def _rows(database: sqlite3.Connection, table: str) -> list[Row]:
    query = f"SELECT {_COLUMNS[table]} FROM {table} ORDER BY 1, 2"  # noqa: S608  no input
    rows = database.execute(query).fetchall()
    for row in rows:
        if crc_of(row[:-1]) != row[-1]:
            raise DamageError(f"row {row[0]!r:.40} of table {table} does not match its checksum")
    return rows
