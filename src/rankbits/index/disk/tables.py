"""Rows of the SQLite database of a collection, format 3.

Formats 4 to 6 have the tables of format 3, and say by their number what 3 has no column for: that
two bytes of factors stand before each code (4 and 6), and that the codes are for items of a model
which encodes queries by another map (5 and 6). The checksum of the state's row says so as well,
lest a wrong number of the format pass for another.

SQLite does not notice a flipped bit, so every row ends in a CRC-32 of its fields, and the number of
parts stands in the row of the state: a state is read as it was written, or not at all. The rows may
also come from a stranger who made the checksums fit, so types and ranges are checked as well.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankbits.codes import MAX_BITS, BinaryCodes
from rankbits.codes.note import checked_model
from rankbits.codes.sides import ITEMS
from rankbits.errors import FileFormatError, InputError
from rankbits.index.disk.segment_file import FileSegment
from rankbits.index.inputs import MAX_ID
from rankbits.index.store.part import Part
from rankbits.index.store.segment import MAX_ROWS, Segment
from rankbits.index.store.state import State
from rankbits.index.store.words import WORD, all_words

_VERSIONS: dict[tuple[bool, str | None], int] = {  # by has_factors and side of a state
    (False, None): 3,
    (True, None): 4,
    (False, ITEMS): 5,
    (True, ITEMS): 6,
}
_TRAITS = {version: traits for traits, version in _VERSIONS.items()}
VERSIONS = frozenset(_TRAITS)
CHUNK = 1 << 14  # rows whose marks are written together
_WORDS = CHUNK // WORD
SCHEMA = (
    "CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), n_bits INTEGER, next_id INTEGER, "
    "next_part INTEGER, change INTEGER, n_parts INTEGER, model TEXT, crc INTEGER)",
    "CREATE TABLE parts (number INTEGER PRIMARY KEY, n INTEGER, n_alive INTEGER, "
    "header_crc INTEGER, crc INTEGER)",
    "CREATE TABLE codes (part INTEGER PRIMARY KEY, ids BLOB, codes BLOB, crc INTEGER)",
    "CREATE TABLE removed (part INTEGER, chunk INTEGER, marks BLOB, crc INTEGER, "
    "PRIMARY KEY (part, chunk))",
)
Row = tuple[Any, ...]


def version_of(state: State) -> int:
    """The format that a state is written in: the oldest that can say all of it."""
    return _VERSIONS[state.has_factors, state.side]


def traits_of(version: int) -> tuple[bool, str | None]:
    """Whether collections of a format have factors, and the side that their codes are for."""
    return _TRAITS[version]


class DamageError(FileFormatError):
    """Rows that cannot be those of a collection; whoever reads them knows the file's name."""


class PartRow(NamedTuple):
    """A part as the database tells of it; without a header_crc its codes are in the database."""

    number: int
    n: int
    n_alive: int
    header_crc: int | None
    crc: int


class Manifest(NamedTuple):
    """What a collection consists of at one moment."""

    n_bits: int
    next_id: int
    next_part: int
    change: int
    parts: tuple[PartRow, ...]
    model: str | None = None


# Reading


def read_change(database: sqlite3.Connection) -> int:
    """The number of the last change, 0 before the first."""
    row = database.execute("SELECT change FROM state").fetchone()
    return row[0] if row and isinstance(row[0], int) else 0


def read_counters(database: sqlite3.Connection) -> tuple[int, int]:
    """The number of the last change, and that of the next part."""
    row = database.execute("SELECT change, next_part FROM state").fetchone() or (0, 1)
    require_numbers("state", row)
    if not 0 <= row[0] < 1 << 62 or not 1 <= row[1] < 1 << 62:
        raise DamageError("its number of changes or of parts is out of range")
    return row[0], row[1]


def read_manifest(database: sqlite3.Connection, version: int) -> Manifest:
    """The rows of the state and of its parts."""
    rows = _rows(
        database,
        "SELECT one, n_bits, next_id, next_part, change, n_parts, model, crc FROM state",
        mark=_mark_of(version),
    )
    if len(rows) != 1:
        raise DamageError("it has no state")
    _, n_bits, next_id, next_part, change, n_parts, model, _ = rows[0]
    parts = _rows(database, "SELECT number, n, n_alive, header_crc, crc FROM parts ORDER BY number")
    part_rows = tuple(PartRow(*row) for row in parts)
    manifest = Manifest(n_bits, next_id, next_part, change, part_rows, model)
    require_sound(manifest, n_parts)
    numbers = {part.number for part in manifest.parts}
    for table in ("codes", "removed"):
        used = {row[0] for row in database.execute(f"SELECT part FROM {table}")}  # noqa: S608
        if not used <= numbers:
            raise DamageError(f"table {table} tells of parts that are not there")
    return manifest


def require_sound(manifest: Manifest, n_parts: Any) -> None:
    """Refuse numbers that no collection has."""
    require_numbers("state", manifest[:4])
    if not 1 <= manifest.n_bits <= MAX_BITS:
        raise DamageError(f"its codes would have {manifest.n_bits} bits")
    if not 0 <= manifest.next_id <= MAX_ID + 1:
        raise DamageError(f"its next id would be {manifest.next_id}")
    if not 1 <= manifest.change < 1 << 62 or not 1 <= manifest.next_part < 1 << 62:
        raise DamageError("its number of changes or of parts is out of range")
    require_model(manifest.model)
    if n_parts != len(manifest.parts):
        raise DamageError(f"it has {len(manifest.parts)} parts of {n_parts}")
    for part in manifest.parts:
        require_numbers("parts", (part.number, part.n, part.n_alive))
        if not 1 <= part.number < manifest.next_part:
            raise DamageError(f"the number of part {part.number} is out of range")
        if not 1 <= part.n_alive <= part.n <= MAX_ROWS:
            raise DamageError(f"part {part.number} would have {part.n_alive} of {part.n} items")
        if part.header_crc is not None:
            require_numbers("parts", (part.header_crc,))


def require_model(model: Any) -> None:
    """Refuse a fingerprint that no model has."""
    try:
        checked_model(model)
    except InputError:
        raise DamageError(f"its model would be {model!r:.40}") from None


def read_codes(database: sqlite3.Connection, part: PartRow, n_bits: int) -> Segment:
    """The segment of a part whose codes are in the database."""
    rows = _rows(database, "SELECT part, ids, codes, crc FROM codes WHERE part = ?", (part.number,))
    if len(rows) != 1:
        raise DamageError(f"it lacks the codes of part {part.number}")
    return segment_of(rows[0][1], rows[0][2], part, n_bits)


def segment_of(ids: Any, codes: Any, part: PartRow, n_bits: int) -> Segment:
    """A segment of bytes that may be anything."""
    width = -(-n_bits // 8)
    if not (isinstance(ids, bytes) and isinstance(codes, bytes)):
        raise DamageError(f"ids and codes of part {part.number} must be bytes")
    if len(ids) != 8 * part.n or len(codes) != width * part.n:
        raise DamageError(
            f"part {part.number} has {len(ids)} bytes of ids and {len(codes)} of codes for "
            f"{part.n} items of {n_bits} bits"
        )
    array = np.frombuffer(ids, "<i8").astype(np.int64)
    if array[0] < 0 or array[-1] > MAX_ID or (np.diff(array) <= 0).any():
        raise DamageError(f"ids of part {part.number} do not ascend from 0 to 2**63 - 2")
    try:
        packed = BinaryCodes(np.frombuffer(codes, np.uint8).reshape(-1, width), n_bits)
    except InputError as error:
        raise DamageError(f"part {part.number}: {error}") from None
    return Segment.of(packed, array)


def read_alive(database: sqlite3.Connection, part: PartRow) -> np.ndarray | None:
    """Words of the rows that are left of a part, None for all."""
    query = "SELECT part, chunk, marks, crc FROM removed WHERE part = ?"
    return alive_of(_rows(database, query, (part.number,)), part)


def alive_of(rows: Iterable[Row], part: PartRow) -> np.ndarray | None:
    """What marks (part, chunk, bytes, crc) of removed rows leave; None if there are none."""
    everything = all_words(part.n)
    alive = None
    for _, chunk, marks, _ in rows:
        first = chunk * _WORDS if isinstance(chunk, int) else -1
        if not 0 <= first < len(everything):
            raise DamageError(f"marks of part {part.number} lie outside of it")
        if not isinstance(marks, bytes) or len(marks) != 8 * _WORDS:
            raise DamageError(f"marks of part {part.number} must be {8 * _WORDS} bytes")
        removed = np.frombuffer(marks, "<u8").astype(np.uint64)
        piece = everything[first : first + _WORDS]
        if removed[len(piece) :].any() or (removed[: len(piece)] & ~piece).any():
            raise DamageError(f"marks of part {part.number} lie outside of it")
        alive = everything.copy() if alive is None else alive
        alive[first : first + _WORDS] &= ~removed[: len(piece)]
    n_alive = part.n if alive is None else int(np.bitwise_count(alive).sum())
    if n_alive != part.n_alive:
        raise DamageError(f"marks of part {part.number} leave {n_alive} items, not {part.n_alive}")
    return alive


def require_numbers(table: str, fields: Sequence[Any]) -> None:
    """Refuse fields that are not integers."""
    for field in fields:
        if not isinstance(field, int):
            raise DamageError(f"table {table} has {field!r:.40} where an integer must be")


def _mark_of(version: int) -> Row:
    """What stands behind the fields of the state where its checksum is computed."""
    has_factors, side = traits_of(version)
    return (*(("factors",) if has_factors else ()), *((side,) if side else ()))


def _rows(
    database: sqlite3.Connection, query: str, values: Row = (), *, mark: Row = ()
) -> list[Row]:
    rows = database.execute(query, values).fetchall()
    for row in rows:
        if crc_of((*row[:-1], *mark)) != row[-1]:
            raise DamageError(
                f"row {row[0]!r:.40} of table {query.split(' FROM ')[1].split()[0]} does "
                "not match its checksum"
            )
    return rows


def crc_of(fields: Sequence[Any]) -> int:
    """CRC-32 of fields one after the other: blobs as they are, all else in ASCII and a space."""
    crc = 0
    for field in fields:
        crc = zlib.crc32(field if isinstance(field, bytes) else b"%a " % (field,), crc)
    return crc


# Writing


def write_state(database: sqlite3.Connection, old: State | None, new: State) -> None:
    """Write what is new in a state, and delete what it lacks; without an old one, all of it."""
    if old is None:
        for table in ("state", "parts", "codes", "removed"):
            database.execute(f"DELETE FROM {table}")  # noqa: S608  no input
    before = {part.number: part for part in old.parts} if old else {}
    gone = [(number,) for number in before.keys() - {part.number for part in new.parts}]
    database.executemany("DELETE FROM parts WHERE number = ?", gone)
    database.executemany("DELETE FROM codes WHERE part = ?", gone)
    database.executemany("DELETE FROM removed WHERE part = ?", gone)
    for part in new.parts:
        if part is not before.get(part.number):
            _put_part(database, part, before.get(part.number))
    numbers = new.n_bits, new.next_id, new.next_part, new.change
    mark = _mark_of(version_of(new))
    _put(database, "state", 1, *numbers, len(new.parts), new.model, mark=mark)


def row_of(part: Part) -> PartRow:
    """The row of a part."""
    segment = part.segment
    header_crc = segment.header.crc if isinstance(segment, FileSegment) else None
    fields = (part.number, len(segment), part.n_alive, header_crc)
    return PartRow(*fields, crc_of(fields))


def _put_part(database: sqlite3.Connection, part: Part, before: Part | None) -> None:
    row, segment = row_of(part), part.segment
    _put(database, "parts", *row[:-1])
    if before is None and row.header_crc is None:
        ids = segment.id_array().astype("<i8", copy=False).tobytes()
        _put(database, "codes", part.number, ids, segment.codes().packed.tobytes())
    if part.alive is not None:
        _put_marks(database, part, None if before is None else before.alive)


def _put_marks(database: sqlite3.Connection, part: Part, before: np.ndarray | None) -> None:
    everything = all_words(len(part.segment))
    removed = _in_chunks(everything & ~part.alive)  # type: ignore[operator]
    known = np.zeros_like(removed) if before is None else _in_chunks(everything & ~before)
    for chunk in np.flatnonzero((removed != known).any(axis=1)).tolist():
        marks = removed[chunk].astype("<u8", copy=False).tobytes()
        _put(database, "removed", part.number, chunk, marks)


def _in_chunks(words: np.ndarray) -> np.ndarray:
    padded = np.zeros((-(-len(words) // _WORDS), _WORDS), np.uint64)
    padded.reshape(-1)[: len(words)] = words
    return padded


def _put(database: sqlite3.Connection, table: str, *fields: Any, mark: Row = ()) -> None:
    places = ", ".join("?" * (len(fields) + 1))
    database.execute(
        f"INSERT OR REPLACE INTO {table} VALUES ({places})",  # noqa: S608  no input
        (*fields, crc_of((*fields, *mark))),
    )
