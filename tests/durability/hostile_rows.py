"""Rows of a collection's database that are wrong, under the right checksums.

The mutations follow the schema that they find (PRAGMA table_info), and know only what the blobs
mean; so they work for every version of the format.
"""

import sqlite3
import zlib

import internals
import numpy as np

NUMBERS = (-1, 0, 1, 2, 3, 7, 8, 63, 64, 65, 4095, 4096, 4097, 16384, 2**31 - 1, 2**31, 2**32 - 129)
NUMBERS += (2**32 - 1, 2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**63 - 2, -(2**31), -(2**63))
OTHERS = ("", "x", "12", "../1", "a\nb", "\0", "\ud7ff" * 3, b"", b"\0" * 8, b"\xff" * 8)
MARKS = {4: ("factors",), 5: ("items",), 6: ("factors", "items")}  # of `docs/formats.md`
OTHERS += (None, 1.5, -0.0, 1e300, float("inf"), float("-inf"))


def pick(rng, choices):
    """One of some choices, as it is: NumPy would turn it into a type of its own."""
    return choices[int(rng.integers(len(choices)))]


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
        """Each row as it is, by which it is found again, and its fields without the checksum."""
        rows = self.database.execute(f"SELECT * FROM {table}").fetchall()
        return [(row, list(row[:-1])) for row in rows]

    def put(self, table, row, fields):
        """Write fields in place of a row under a new checksum; False if SQLite does not take it."""
        pairs = ", ".join(f"{name} = ?" for name in self.columns[table])
        values = (*fields, self.crc_of(table, fields), *row)
        return self._try(f"UPDATE {table} SET {pairs} WHERE {self._same(table)}", values)

    def delete(self, table, row):
        return self._try(f"DELETE FROM {table} WHERE {self._same(table)}", row)

    def _same(self, table):
        return " AND ".join(f"{name} IS ?" for name in self.columns[table])

    def repair_checksums(self):
        """SQLite may have turned a value into one of another type when it was written."""
        for table in self.columns:
            for row, fields in self.of(table):
                if row[-1] != self.crc_of(table, fields):
                    self.put(table, row, fields)

    def insert(self, table, fields):
        places = ", ".join("?" * (len(fields) + 1))
        values = (*fields, self.crc_of(table, fields))
        return self._try(f"INSERT OR REPLACE INTO {table} VALUES ({places})", values)

    def crc_of(self, table, fields):
        """The checksum of a row; that of the state ends in the marks of its format, if any."""
        version = self.database.execute("PRAGMA user_version").fetchone()[0]
        return crc_of((*fields, *MARKS.get(version, ())) if table == "state" else fields)

    def _try(self, statement, values):
        try:
            self.database.execute(statement, values)
        except (sqlite3.Error, OverflowError, UnicodeError):
            return False
        return True

    def value(self, table, fields, column):
        return fields[self.columns[table].index(column)]

    def set(self, table, fields, column, value):
        fields[self.columns[table].index(column)] = value

    def repair_counts(self):
        """Let the counts of the state be those of the tables."""
        for row, fields in self.of("state"):
            for column, table in internals.COUNTED.items():
                if column in self.columns["state"] and table in self.columns:
                    n = self.database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                    self.set("state", fields, column, n)
            self.put("state", row, fields)

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
        for row, fields in self.of(internals.MANIFEST):
            number, n, n_alive, *_ = fields
            ids = lengths.get(number)
            if isinstance(ids, bytes):
                n = len(ids) // 8
            if isinstance(n, int):
                n_alive = max(n - marks.get(number, 0), -(2**63))
            self.put(internals.MANIFEST, row, [number, n, n_alive, *fields[3:]])


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
        row, fields = pick(rng, rows.of(table))
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
        rows.put(table, row, fields)


def mutate_rows(case, rng):
    """A row more or a row less."""
    with case.rows() as rows:
        table = pick(rng, list(rows.columns))
        known = rows.of(table)
        if known and rng.random() < 0.4:
            rows.delete(table, pick(rng, known)[0])
            case.say(f"a row of {table} less")
        elif known:
            fields = list(pick(rng, known)[1])
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
        known = [(table, *row) for table in tables for row in rows.of(table)]
        if not known:
            return
        table, row, fields = pick(rng, known)
        at = rows.columns[table].index("ids")
        other = rows.columns[table].index("codes")
        ids = np.frombuffer(fields[at][: len(fields[at]) // 8 * 8], "<i8")
        width = min(max(len(fields[other]) // max(len(ids), 1), 1), 512)
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
        rows.put(table, row, fields)
