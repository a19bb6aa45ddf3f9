"""Folders made by strangers: collections that are wrong in every way, with all checksums repaired.

    python tests/durability/hostile.py --cases 2000 --seed 0
    python tests/durability/hostile.py --seed 1234 --cases 1    # repeats one case, and says what it is

A case takes a valid collection, changes fields of its rows, its schema, its segment files or what its
names stand for, repairs the checksums and counts, and does with it all that can be done with a
collection. The answer is a result whose ids and distances are right, or an error of rankbits in
one line, within a second. Anything else is a violation: another exception, a crash (run it under
AddressSanitizer), a result that cannot be, a file outside of the folder that was changed, a hang.

Mutations of rows follow the schema that they find there (PRAGMA table_info), and know only what
the blobs mean; so they work for every version of the format.
"""

import argparse
import faulthandler
import json
import os
import shutil
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from contextlib import closing
from pathlib import Path

import internals
import numpy as np
from violations import Report

from rankbits.errors import RankbitsError
from rankbits.index import Collection, HammingIndex

LIMIT = 1.0  # seconds for a case
PATIENCE = 4.0  # seconds until a case that hangs is ended, with a traceback of where
VICTIM = b"a file of somebody else\n"
NUMBERS = (-1, 0, 1, 2, 3, 7, 8, 63, 64, 65, 4095, 4096, 4097, 16384, 2**31 - 1, 2**31, 2**32 - 129)
NUMBERS += (2**32 - 1, 2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**63 - 2, -(2**31), -(2**63))
OTHERS = ("", "x", "12", "../1", "a\nb", "\0", "\ud7ff" * 3, b"", b"\0" * 8, b"\xff" * 8)
OTHERS += (None, 1.5, -0.0, 1e300, float("inf"), float("-inf"))


# Valid collections


def build_templates(base):
    """Collections of several shapes: name, folder."""
    rng = np.random.default_rng(5)
    shapes = {
        "range ids": (13, range(150), (), range(150, 160)),
        "listed ids": (64, range(3, 900, 7), (10, 17), range(5000, 5100, 9)),
        "removed": (20, range(100, 300), range(110, 260, 2), ()),
        "unsealed only": (9, (), (), range(0, 60, 3)),
        "one word and a bit": (65, range(70), range(0, 9), range(70, 75)),
        "empty": (24, (), (), ()),
        "one item": (1, (4,), (), ()),
    }
    for number, (n_bits, sealed, removed, unsealed) in enumerate(shapes.values()):
        folder = base / f"template-{number}"
        with Collection.create(folder, n_bits) as collection:
            for ids in (sealed, [key + 10_000 for key in sealed]) if number == 1 else (sealed,):
                if len(ids):
                    collection.add(codes_for(rng, len(ids), n_bits), ids=list(ids))
                    collection.seal()
            if len(removed):
                collection.remove(list(removed))
            if len(unsealed):
                collection.add(codes_for(rng, len(unsealed), n_bits), ids=list(unsealed))
    return list(shapes)


def codes_for(rng, n, n_bits):
    return np.packbits(rng.integers(0, 2, (n, n_bits), dtype=np.uint8), axis=1)


def pick(rng, choices):
    """One of some choices, as it is: NumPy would turn it into a type of its own."""
    return choices[int(rng.integers(len(choices)))]


# Rows


class Rows:
    """The database of a case, open to be changed; it repairs checksums and counts at the end."""

    def __init__(self, folder):
        self.database = sqlite3.connect(folder / internals.DATABASE, isolation_level=None)
        self.database.execute("PRAGMA synchronous = OFF")
        self.database.execute("PRAGMA ignore_check_constraints = ON")
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        self.columns = {
            table: [row[1] for row in self.database.execute(f"PRAGMA table_info({table})")]
            for (table,) in self.database.execute(names).fetchall()
        }

    def of(self, table):
        """Row id, and fields without the checksum."""
        rows = self.database.execute(f"SELECT rowid, * FROM {table}").fetchall()
        return [(row[0], list(row[1:-1])) for row in rows]

    def put(self, table, rowid, fields):
        """Write fields back under a new checksum; False if SQLite takes no such value."""
        pairs = ", ".join(f"{name} = ?" for name in self.columns[table])
        values = (*fields, crc_of(fields), rowid)
        return self._try(f"UPDATE {table} SET {pairs} WHERE rowid = ?", values)

    def insert(self, table, fields):
        places = ", ".join("?" * (len(fields) + 1))
        return self._try(f"INSERT OR REPLACE INTO {table} VALUES ({places})", (*fields, crc_of(fields)))

    def _try(self, statement, values):
        try:
            self.database.execute(statement, values)
        except (sqlite3.Error, OverflowError, UnicodeError):
            return False
        return True

    @property
    def manifest(self):
        """The table that names the files."""
        return next(table for table in internals.MANIFEST if table in self.columns)

    def value(self, table, fields, column):
        return fields[self.columns[table].index(column)]

    def set(self, table, fields, column, value):
        fields[self.columns[table].index(column)] = value

    def repair_counts(self):
        """Let the counts of the state be those of the tables, and those of parts be their marks'."""
        for rowid, fields in self.of("state"):
            for column, table in internals.COUNTED.items():
                if column in self.columns["state"] and table in self.columns:
                    n = self.database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                    self.set("state", fields, column, n)
            self.put("state", rowid, fields)

    def repair_alive(self):
        """Let the number of items that are there fit the marks of removal and the ids."""
        marks, key = {}, self.columns.get("removed", [None])[0]
        for _, fields in self.of("removed") if key else ():
            blob = self.value("removed", fields, "marks")
            if isinstance(blob, bytes):
                n = sum(byte.bit_count() for byte in blob)
                marks[fields[0]] = marks.get(fields[0], 0) + n
        lengths = {}
        if "codes" in self.columns:
            lengths = {fields[0]: fields[1] for _, fields in self.of("codes")}
        for rowid, fields in self.of(self.manifest):
            number, n, n_alive, *_ = fields
            ids = lengths.get(number)
            if isinstance(ids, bytes):
                n = len(ids) // 8
            if isinstance(n, int):
                n_alive = max(n - marks.get(number, 0), -(2**63))
            self.put(self.manifest, rowid, [number, n, n_alive, *fields[3:]])


def crc_of(fields):
    """CRC-32 of the fields of a row, as `docs/formats.md` has it."""
    crc = 0
    for value in fields:
        crc = zlib.crc32(value if isinstance(value, bytes) else b"%a " % (value,), crc)
    return crc


def damaged_blob(column, blob, rng):
    """A blob that means something else, or nothing."""
    if not isinstance(blob, bytes):
        return b"\xff" * 16
    n, data = len(blob), bytearray(blob)
    cut = [blob[: n // 2], blob[:-1], blob[:8], b"", blob + blob, blob + b"\0", blob + b"\xff" * 8]
    if column == "ids" and n >= 8:
        ids = np.frombuffer(blob[: n // 8 * 8], "<i8").copy()
        at = rng.integers(len(ids))
        special = [
            ids[::-1], rng.permutation(ids), np.repeat(ids[:1], len(ids)), -ids, ids - 100,
            np.append(ids, ids[-1] + 1), np.append(ids, ids[-1]), ids[:-1], ids + 2**62,
        ]  # fmt: skip
        changed = ids.copy()
        changed[at] = pick(rng, NUMBERS)
        cut += [array.astype("<i8").tobytes() for array in (*special, changed, changed)]
    elif column == "codes":
        data[-1:] = b"\xff"
        cut += [bytes(data), b"\xff" * n, b"\xff" * n, blob + b"\xff" * 3, rng.bytes(n)]
    elif column == "marks":
        data[-8:] = b"\xff" * 8
        bit = bytearray(blob)
        bit[int(rng.integers(n))] ^= 1 << int(rng.integers(8)) if n else 0
        cut += [bytes(data), b"\xff" * n, bytes(n), bytes(bit), bytes(bit), rng.bytes(n)]
    return pick(rng, cut)


def mutate_field(case, rng):
    """One field of one row."""
    with case.rows() as rows:
        tables = [table for table in rows.columns if rows.of(table)]
        table = pick(rng, tables)
        rowid, fields = pick(rng, rows.of(table))
        at = int(rng.integers(len(fields)))
        column, old = rows.columns[table][at], fields[at]
        if isinstance(old, bytes) and rng.random() < 0.85:
            new = damaged_blob(column, old, rng)
        elif rng.random() < 0.25:
            new = pick(rng, OTHERS)
        elif isinstance(old, int) and rng.random() < 0.4:
            new = old + int(rng.integers(-3, 4))
        else:
            new = pick(rng, NUMBERS)
        fields[at] = new
        case.say(f"{table}.{column} = {repr(new)[:60]}")
        rows.put(table, rowid, fields)


def mutate_bits(case, rng):
    """Another length of code, everywhere where it is written, or only in the database."""
    with case.rows() as rows:
        for rowid, fields in rows.of("state"):
            old = rows.value("state", fields, "n_bits")
            if not isinstance(old, int):
                return
            new = pick(rng, (old + 1, old - 1, old + 8, old * 2, old + 7 & ~7, 1, 4096, 5000, 0, 64))
            rows.set("state", fields, "n_bits", new)
            rows.put("state", rowid, fields)
    case.say(f"n_bits {old} -> {new}")
    if rng.random() < 0.6 and 0 < new < 2**32:
        for path in case.segments():
            with Segment(case, path) as segment:
                segment.fields["n_bits"] = new
                segment.lay_out(is_consistent=rng.random() < 0.7)


def mutate_rows(case, rng):
    """A row more or a row less."""
    with case.rows() as rows:
        table = pick(rng, list(rows.columns))
        found = rows.of(table)
        if found and rng.random() < 0.4:
            rows.database.execute(f"DELETE FROM {table} WHERE rowid = ?", (pick(rng, found)[0],))
            case.say(f"a row of {table} less")
        elif found:
            fields = list(pick(rng, found)[1])
            fields[0] = pick(rng, (1, 2, 3, 99, 0, -1, 2**40, fields[0]))
            if table == "removed":
                fields[1] = pick(rng, (0, 1, -1, 7, 2**31, 2**62, fields[1]))
            case.say(f"a row of {table} more: {[v for v in fields if not isinstance(v, bytes)]}")
            rows.insert(table, fields)
        elif table == "removed":
            fields = [1, pick(rng, (0, 0, 1, -1, 2**60)), pick(rng, (b"\xff" * 2048, b"\x03", b""))]
            case.say(f"a row of {table}")
            rows.insert(table, fields)


def mutate_ids_against_codes(case, rng):
    """Ids of codes in the database, more or fewer than there are codes, or doubles of others."""
    with case.rows() as rows:
        tables = [table for table in rows.columns if {"ids", "codes"} <= set(rows.columns[table])]
        found = [(table, *row) for table in tables for row in rows.of(table)]
        if not found:
            return
        table, rowid, fields = pick(rng, found)
        at = rows.columns[table].index("ids")
        other = rows.columns[table].index("codes")
        ids = np.frombuffer(fields[at][: len(fields[at]) // 8 * 8], "<i8")
        width = max(len(fields[other]) // max(len(ids), 1), 1)
        more = int(pick(rng, (1, 2, 64, 1000, 100_000)))
        last = int(ids[-1]) if len(ids) else 0
        choice = int(rng.integers(4))
        if choice == 0:
            ids = np.append(ids, last + 1 + np.arange(more))
        elif choice == 1:
            ids = ids[: -min(more, 5)]
        elif choice == 2:
            fields[other] = fields[other] + rng.bytes(width * more)
        else:
            ids = np.arange(len(ids))  # overlap those of a segment
        fields[at] = ids.astype("<i8").tobytes()
        case.say(f"{table}: {len(ids)} ids, {len(fields[other])} bytes of codes")
        rows.put(table, rowid, fields)


# Segment files

FIELDS = struct.Struct("<8sIIQQqqQQQQQQI")
NAMES = ("magic", "version", "n_bits", "n", "is_range", "first", "last", "block", "planes_at")
NAMES += ("planes_size", "ids_at", "table_at", "n_blocks", "table_crc")
PAGE = 4096


class Segment:
    """A segment file, taken apart; put together again it has the right checksums."""

    def __init__(self, case, path):
        self._case, self._path = case, path
        raw = path.read_bytes()
        self.fields = dict(zip(NAMES, FIELDS.unpack_from(raw), strict=True))
        self.data = bytearray(raw[PAGE : self.fields["table_at"]])
        self.table = None  # instead of the right one
        self.padding = bytes(PAGE - 4 - FIELDS.size)

    def __enter__(self):
        return self

    def lay_out(self, *, is_consistent):
        """Make sizes and offsets those that follow from the number of codes and their length."""
        fields = self.fields
        ids = bytes(self.data[fields["ids_at"] - PAGE :])
        width = -(-fields["n_bits"] // 8)
        size = -(-fields["n"] // 64) * 64 * width
        if size > 1 << 24:
            return
        fields["planes_size"] = size
        if is_consistent:
            planes = bytes(self.data[: fields["ids_at"] - PAGE])[:size].ljust(-(-size // PAGE) * PAGE, b"\0")
            ids = b"" if fields["is_range"] else ids[: 8 * fields["n"]].ljust(-(-8 * fields["n"] // PAGE) * PAGE, b"\0")
            self.data = bytearray(planes + ids)
            fields["ids_at"] = PAGE + len(planes)
            fields["table_at"] = fields["ids_at"] + len(ids)

    def _blocks(self):
        """As the header tells; as one block if that makes no sense."""
        block, ids_at = self.fields["block"], self.fields["ids_at"] - PAGE
        if not 512 <= block <= 1 << 30 or not 0 <= ids_at <= len(self.data):
            block, ids_at = len(self.data) or 1, 0
        for region in (self.data[:ids_at], self.data[ids_at:]):
            for at in range(0, len(region), block):
                yield bytes(region[at : at + block])

    def __exit__(self, *error):
        crcs = [zlib.crc32(block) for block in self._blocks()]
        table = struct.pack(f"<{len(crcs)}I", *crcs) if self.table is None else self.table
        if self._case.rng.random() < 0.8:
            self.fields["n_blocks"] = len(table) // 4
        self.fields["table_crc"] = zlib.crc32(table)
        values = []
        for code, name in zip("sIIQQqqQQQQQQI", NAMES, strict=True):
            value, size = self.fields[name], {"I": 32, "Q": 64, "q": 64}.get(code)
            if code in "IQ":
                value &= (1 << size) - 1
            elif code == "q":
                value = (value + 2**63) % 2**64 - 2**63
            values.append(value)
        header = FIELDS.pack(*values) + self.padding
        crc = zlib.crc32(header)
        self._path.write_bytes(header + struct.pack("<I", crc) + bytes(self.data) + table)
        self._case.name_segment(self._path, crc, self.fields["n"])


def mutate_header(case, rng):
    """A field of a segment's header."""
    path = pick(rng, case.segments())
    with Segment(case, path) as segment:
        name = pick(rng, NAMES[1:-1])
        old = segment.fields[name]
        near = (old + 1, old - 1, old * 2, old + 64, old + 4096, old ^ 1)
        new = pick(rng, (*near, *near, *NUMBERS))
        segment.fields[name] = new
        case.say(f"{path.name}: {name} {old} -> {new}")
        if rng.random() < 0.5 and 0 <= segment.fields["n"] < 2**32 and 0 < segment.fields["n_bits"]:
            segment.lay_out(is_consistent=rng.random() < 0.7)
        if rng.random() < 0.1:
            segment.padding = rng.bytes(len(segment.padding))


def mutate_data(case, rng):
    """Codes and ids of a segment."""
    path = pick(rng, case.segments())
    with Segment(case, path) as segment:
        fields, data = segment.fields, segment.data
        ids_at, choice = fields["ids_at"] - PAGE, int(rng.integers(7))
        if choice == 0:  # bits beyond n_bits, and rows behind the last one
            data[:ids_at] = b"\xff" * ids_at
        elif choice == 1:
            data[:ids_at] = rng.bytes(ids_at)
        elif choice == 2 and not fields["is_range"]:
            ids = np.frombuffer(data[ids_at : ids_at + 8 * fields["n"]], "<i8").copy()
            blob = damaged_blob("ids", ids.tobytes(), rng)
            data[ids_at : ids_at + len(blob)] = blob
        elif choice == 3:  # ids that are listed although they follow one another
            fields["is_range"] = 1 - fields["is_range"]
            segment.lay_out(is_consistent=True)
        elif choice == 4:
            segment.table = pick(rng, (b"", b"\xff" * 4, bytes(4096), b"\1\2\3"))
        elif choice == 5:
            del data[int(rng.integers(len(data))) :]
        else:
            data += rng.bytes(int(rng.integers(1, 9000)))
        case.say(f"{path.name}: data changed, way {choice}")


# The schema

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {} FROM c"
LARGE = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 400000) SELECT {} FROM c"


def mutate_schema(case, rng):
    """Views, triggers, generated columns, other types and other tables in place of ours."""
    with case.rows(is_repaired=False) as rows:
        table = pick(rng, list(rows.columns))
        columns = rows.columns[table]
        case.say(f"schema of {table}, ", end="")
        for statement in schema_statements(table, columns, rows, case, rng):
            try:
                rows.database.execute(statement)
            except sqlite3.Error as error:
                case.say(f"not possible: {error}")


def schema_statements(table, columns, rows, case, rng):
    choice = int(rng.integers(14))
    case.say(f"way {choice}")
    listed = ", ".join(columns)
    if choice <= 3:
        body = ENDLESS.format(", ".join(f"x AS {name}" for name in columns))
        if choice == 1:
            body = f"{ENDLESS.format('max(x)')} WHERE x < 0"
            body = f"SELECT {', '.join(f'({body}) AS {name}' for name in columns)}"
        if choice == 2:
            body = LARGE.format(", ".join(f"x AS {name}" for name in columns))
        if choice == 3:
            body = f"SELECT {', '.join(f'zeroblob(400000000) AS {name}' for name in columns)}"
        return [f"DROP TABLE {table}", f"CREATE VIEW {table} AS {body}"]
    if choice == 4:
        work = ENDLESS.format("count(*)")
        kinds = ("INSERT", "DELETE", "UPDATE")
        return [f"CREATE TRIGGER t{kind} AFTER {kind} ON {table} BEGIN {work}; END" for kind in kinds]
    if choice == 5:  # takes back what was written
        return [f"CREATE TRIGGER t BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END"]
    if choice == 6:
        return [f"ALTER TABLE {table} ADD COLUMN more INTEGER DEFAULT 7"]
    if choice == 7:
        name = columns[int(rng.integers(len(columns)))]
        others = ", ".join(f"{column} INTEGER" for column in columns if column != name)
        generated = f"{name} INTEGER GENERATED ALWAYS AS (length(hex(zeroblob(100000000)))) VIRTUAL"
        return [f"DROP TABLE {table}", f"CREATE TABLE {table} ({others}, {generated})"]
    if choice == 8:
        return [f"DROP TABLE {table}"]
    if choice == 9:
        return [f"ALTER TABLE {table} RENAME TO old", f"CREATE VIEW {table} AS SELECT * FROM old"]
    if choice == 10:
        return ["CREATE TABLE more (x)", "CREATE TABLE sqlite_other (x)", "CREATE INDEX i ON more (x)"]
    if choice == 11:
        return [f"ALTER TABLE {table} RENAME COLUMN {columns[-1]} TO {'x' * 2000}"]
    if choice == 12:  # names of files that lead elsewhere; every type in every column
        values = rows.of(table)
        rows.database.execute(f"DROP TABLE {table}")
        rows.database.execute(f"CREATE TABLE {table} ({listed})")
        for _, fields in values:
            fields[int(rng.integers(len(fields)))] = pick(rng, ("../../victim", "../1", *OTHERS))
            if rng.random() < 0.5:
                fields[0] = pick(rng, ("../../victim", "../segments/1", "1/../1", 1.0, "1", b"1"))
            rows.insert(table, fields)
        return []
    pragmas = ("user_version", "application_id")
    return [f"PRAGMA {pick(rng, pragmas)} = {pick(rng, (0, 1, 2, 3, -1, 2**31 - 1))}"]


# Files that are something else


def mutate_files(case, rng):
    """A file, or a folder, is a link, a folder, a pipe, empty, or huge."""
    folder, outside = case.folder, case.folder.parent
    database = internals.DATABASE
    names = [database, f"{database}-wal", f"{database}-shm", f"{database}-journal", "writer.lock"]
    names += ["segments", *(str(path.relative_to(folder)) for path in case.segments())]
    path = folder / pick(rng, names)
    kind = pick(rng, ("link", "dangling", "loop", "folder", "pipe", "empty", "huge", "noise", "zero"))
    case.say(f"{path.relative_to(folder)} is {kind}")
    old = outside / "moved"
    if path.exists():
        os.rename(path, old)
    if kind == "link":
        target = outside / "victim"
        if old.exists() and rng.random() < 0.7:
            target = old
        path.symlink_to(target)
    elif kind == "dangling":
        path.symlink_to(outside / "nothing")
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to(pick(rng, ("/dev/zero", "/dev/full", "/dev/null")))
    else:
        path.write_bytes({"empty": b"", "noise": rng.bytes(9000), "huge": b""}[kind])
        if kind == "huge":
            if old.is_file() and rng.random() < 0.7:
                path.write_bytes(old.read_bytes())
            os.truncate(path, 1 << 42)


MUTATIONS = {
    mutate_field: 8,
    mutate_rows: 3,
    mutate_bits: 3,
    mutate_ids_against_codes: 3,
    mutate_header: 5,
    mutate_data: 4,
    mutate_schema: 3,
    mutate_files: 2,
}
NEED_SEGMENTS = {mutate_header, mutate_data}


class Case:
    """One folder that is about to become hostile."""

    def __init__(self, base, templates, seed):
        self.rng = np.random.default_rng(seed)
        self._place = base / "case"
        shutil.rmtree(self._place, ignore_errors=True)
        self.folder = self._place / "collection"
        number = int(self.rng.integers(len(templates)))
        shutil.copytree(base / f"template-{number}", self.folder)
        self.victim = self._place / "victim"
        self.victim.write_bytes(VICTIM)
        self.words = [f"{templates[number]}: "]
        self._open = None

    def say(self, text, end="; "):
        self.words.append(text + end)

    def segments(self):
        return sorted((self.folder / "segments").glob("*.seg"))

    def rows(self, *, is_repaired=True):
        return _Opened(self, is_repaired=is_repaired)

    def name_segment(self, path, crc, n):
        """Let the manifest name a file as it is now."""
        with self.rows() as rows:
            for rowid, fields in rows.of(rows.manifest):
                if fields[0] == int(path.stem):
                    rows.set(rows.manifest, fields, "header_crc", crc)
                    if self.rng.random() < 0.7 and n < 2**63:
                        before = rows.value(rows.manifest, fields, "n")
                        alive = rows.value(rows.manifest, fields, "n_alive")
                        rows.set(rows.manifest, fields, "n", n)
                        if isinstance(before, int) and isinstance(alive, int):
                            rows.set(rows.manifest, fields, "n_alive", alive + n - before)
                    rows.put(rows.manifest, rowid, fields)

    def mutate(self):
        """One mutation, or a few on top of each other; files last, as they hide the rest."""
        n = int(pick(self.rng, (1, 1, 1, 2, 3)))
        mutations = [mutation for mutation, weight in MUTATIONS.items() for _ in range(weight)]
        chosen = [pick(self.rng, mutations) for _ in range(n)]
        for mutation in sorted(chosen, key=list(MUTATIONS).index):
            if mutation in NEED_SEGMENTS and not self.segments():
                continue
            try:
                mutation(self, self.rng)
            except (sqlite3.Error, StopIteration, TypeError, ValueError, OverflowError) as error:
                self.say(f"(not applied: {error})")  # what came before was too much for it
        return "".join(self.words)


class _Opened:
    """The rows of a case for one mutation, repaired afterwards as far as chance has it."""

    def __init__(self, case, *, is_repaired):
        self._case, self._is_repaired = case, is_repaired

    def __enter__(self):
        self._rows = Rows(self._case.folder)
        return self._rows

    def __exit__(self, *error):
        with closing(self._rows.database):
            if error[0] is None and self._is_repaired:
                for repair in (self._rows.repair_alive, self._rows.repair_counts):
                    if self._case.rng.random() < 0.75:
                        try:
                            repair()
                        except (sqlite3.Error, StopIteration, ValueError, TypeError, OverflowError):
                            self._case.say("(not repaired)")


# What is done with a folder


class Wrong(Exception):
    """A result that cannot be."""


class Twice(Wrong):
    """An id that is there twice; opening need not notice that, but a check must."""


def check_results(index, rng):
    """Search, and compare what comes with the codes that the index itself gives out."""
    n_bits, ids = index.n_bits, index.ids
    width = -(-n_bits // 8)
    if (ids < 0).any() or (np.diff(ids) < 0).any() or len(ids) != len(index):
        raise Wrong("ids are negative, or do not ascend, or are not as many as there are items")
    if (np.diff(ids) == 0).any():
        raise Twice("an id is there twice, and a check passes")
    codes = index.codes().packed
    if codes.shape != (len(ids), width):
        raise Wrong(f"codes have shape {codes.shape}, there are {len(ids)} ids")
    if n_bits % 8 and (codes[:, -1] & 0xFF >> n_bits % 8).any():
        raise Wrong("codes have bits beyond their length")
    queries = codes_for(rng, 2, n_bits)
    distances = np.bitwise_count(queries[:, None] ^ codes[None]).sum(axis=2, dtype=np.int64)
    table, names = index.search(queries, 4)
    ragged = index.within(queries, n_bits // 2)
    for row in range(2):
        right = sorted(zip(distances[row].tolist(), ids.tolist(), strict=True))
        nearest = [pair for pair in zip(table[row].tolist(), names[row].tolist(), strict=True) if pair[1] >= 0]
        if nearest != right[:4]:
            raise Wrong(f"the nearest are {nearest}, and should be {right[:4]}")
        near = slice(ragged.offsets[row], ragged.offsets[row + 1])
        pairs = list(zip(ragged.distances[near].tolist(), ragged.ids[near].tolist(), strict=True))
        if pairs != [pair for pair in right if pair[0] <= n_bits // 2]:
            raise Wrong("the items within a radius are others")


def read_collection(folder, rng):
    with Collection.open(folder) as collection:
        check_results(collection, rng)
        collection.info()
        repr(collection)
        len(collection)


def check_collection(folder, rng):
    with Collection.open(folder) as collection:
        collection.check()


def read_unverified(folder, rng):
    with Collection.open(folder, verify=False) as collection:
        check_results(collection, rng)


def copy_collection(folder, rng):
    with Collection.open(folder) as collection:
        collection.snapshot(folder.parent / "snapshot", link=bool(rng.integers(2)))
    read_collection(folder.parent / "snapshot", rng)


def load_mapped(folder, rng):
    check_results(HammingIndex.load(folder), rng)


def load_into_memory(folder, rng):
    index = HammingIndex.load(folder, mmap=False, kind="mih")
    check_results(index, rng)
    index.add(codes_for(rng, 3, index.n_bits))
    index.save(folder.parent / "saved")


def write_collection(folder, rng):
    with Collection.open(folder, writable=True) as collection:
        codes = codes_for(rng, 3, collection.n_bits)
        ids = collection.add(codes)
        collection.remove(ids[:1])
        if len(collection.ids):
            collection.upsert(codes[:1], ids=collection.ids[:1])
        collection.seal()
        collection.compact()
        check_results(collection, rng)


def save_over(folder, rng):
    index = HammingIndex(8)
    index.add(codes_for(rng, 3, 8))
    index.save(folder)


def create_over(folder, rng):
    Collection.create(folder, 8).close()


READS = (check_collection, read_unverified, copy_collection, load_mapped, load_into_memory)
WRITES = (write_collection, write_collection, save_over, create_over)


def uses_of(rng):
    """What is done in one case; what writes comes last, and works on what is left."""
    first, second = rng.choice(len(READS), 2, replace=False)
    return (read_collection, READS[first], READS[second], pick(rng, WRITES))


def passes_check(folder):
    try:
        check_collection(folder, None)
    except RankbitsError:
        return False
    return True


def run_case(base, templates, seed):
    """What is wrong in one case: sentence, detail; and what the case was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = Case(base, templates, seed)
        words = case.mutate()
        start = time.monotonic()
        for use in uses_of(case.rng):
            try:
                use(case.folder, np.random.default_rng(seed))
            except RankbitsError as error:
                if "\n" in str(error) or not str(error):
                    return f"{use.__name__}: an error of more than one line", str(error), words
            except Wrong as error:
                if isinstance(error, Twice) and not passes_check(case.folder):
                    continue
                return f"{use.__name__}: a result that cannot be", str(error), words
            except Exception as error:  # noqa: BLE001  what this tool looks for
                sort = f"{use.__name__}: raises {type(error).__name__}"
                return sort, traceback.format_exc(limit=-4), words
            if case.victim.read_bytes() != VICTIM:
                return f"{use.__name__}: changes a file outside of the folder", "", words
        seconds = time.monotonic() - start
    if seconds > LIMIT:
        return "takes more than a second", f"{seconds:.1f} s", words
    return None, f"{seconds:.3f}", words


def work(base, first, last, only):
    """The process that opens the folders: tells each case before and after."""
    templates = build_templates(base)
    faulthandler.enable()
    for seed in range(first, last):
        sys.stdout.write(json.dumps({"begins": seed}) + "\n")
        sys.stdout.flush()
        for attempt in range(3):
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            sort, detail, words = run_case(base, templates, seed)
            faulthandler.cancel_dump_traceback_later()
            if sort != "takes more than a second" or attempt == 2:
                break  # a busy machine may take its time, but not three times
        outcome = {"ended": seed, "sort": sort, "detail": detail, "words": words}
        sys.stdout.write(json.dumps(outcome) + "\n")
        if only:
            sys.stderr.write(f"{words}\n{sort}\n{detail}\n")
    sys.stdout.write('{"done": true}\n')
    sys.stdout.flush()


def watch(options, report, base):
    """Start the process that works, and start it again behind a case that ended it."""
    first, last, slowest = options.seed, options.seed + options.cases, 0.0
    while first < last:
        command = [sys.executable, __file__, "--work", str(base), "--seed", str(first)]
        command += ["--cases", str(last - first)] + ["--only"] * (options.cases == 1)
        errors = base / "errors"
        with errors.open("w") as file:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
            begun, is_done = first, False
            for line in process.stdout:
                message = json.loads(line)
                begun, is_done = message.get("begins", begun), "done" in message
                if "ended" in message:
                    report.count("cases")
                    if message["sort"]:
                        tell(report, begun, message["sort"], f"{message['words']}{message['detail']}")
                    else:
                        slowest = max(slowest, float(message["detail"]))
            process.wait()
        if options.cases == 1:
            sys.stderr.write(errors.read_text())
        if is_done:
            break
        report.count("cases")
        text = errors.read_text()
        sort = "hangs" if "Timeout (0:" in text else f"ends the process ({process.returncode})"
        sort = "AddressSanitizer" if "AddressSanitizer" in text else sort
        tell(report, begun, sort, text[:2500])
        first = begun + 1
    report.counts["slowest_seconds"] = round(slowest, 3)


def tell(report, seed, sort, detail):
    command = f"python tests/durability/hostile.py --seed {seed} --cases 1"
    report.violation(sort, f"seed {seed}: {detail}", command)


def clear(base):
    """Folders that a case left without permission, pipes and huge files go as well."""
    for path in base.rglob("*"):
        if path.is_symlink() or stat.S_ISFIFO(path.lstat().st_mode):
            path.unlink()
    shutil.rmtree(base, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--keep-going", action="store_true", help="count all violations")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        shutil.rmtree(options.work / "all", ignore_errors=True)
        (options.work / "all").mkdir()
        work(options.work / "all", options.seed, options.seed + options.cases, options.only)
        return
    report = Report("hostile", goes_on=options.keep_going)
    base = Path(tempfile.mkdtemp(dir=options.folder)).resolve()
    try:
        watch(options, report, base)
    finally:
        clear(base)
    report.finish()


if __name__ == "__main__":
    main()
