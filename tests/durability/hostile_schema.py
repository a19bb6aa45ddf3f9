"""Schemas and files that are not what their names say."""

import os
import sqlite3

import internals
from hostile_rows import OTHERS, pick

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {} FROM c"
LARGE = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 400000) SELECT {} FROM c"
)


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
    """Statements that put something else in place of a table."""
    ways = (view_without_end, view_with_much, trigger, columns_of_others, others, untyped, pragma)
    way = pick(rng, ways)
    case.say(way.__name__)
    return way(table, columns, rows, rng)


def view_without_end(table, columns, rows, rng):
    body = ENDLESS.format(", ".join(f"x AS {name}" for name in columns))
    if rng.random() < 0.5:
        number = f"{ENDLESS.format('max(x)')} WHERE x < 0"
        body = f"SELECT {', '.join(f'({number}) AS {name}' for name in columns)}"
    return [f"DROP TABLE {table}", f"CREATE VIEW {table} AS {body}"]


def view_with_much(table, columns, rows, rng):
    body = LARGE.format(", ".join(f"x AS {name}" for name in columns))
    if rng.random() < 0.5:
        body = f"SELECT {', '.join(f'zeroblob(400000000) AS {name}' for name in columns)}"
    if rng.random() < 0.2:
        body = "SELECT * FROM old"
    return [f"ALTER TABLE {table} RENAME TO old", f"CREATE VIEW {table} AS {body}"]


def trigger(table, columns, rows, rng):
    """Work without end, or writes that are taken back."""
    if rng.random() < 0.3:
        return [f"CREATE TRIGGER t BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END"]
    work, kinds = ENDLESS.format("count(*)"), ("INSERT", "DELETE", "UPDATE")
    return [f"CREATE TRIGGER t{kind} AFTER {kind} ON {table} BEGIN {work}; END" for kind in kinds]


def columns_of_others(table, columns, rows, rng):
    """A column more, one that is computed, or one of another name."""
    if rng.random() < 0.3:
        return [f"ALTER TABLE {table} ADD COLUMN more INTEGER DEFAULT 7"]
    name = pick(rng, columns)
    if rng.random() < 0.3:
        return [f"ALTER TABLE {table} RENAME COLUMN {name} TO {'x' * 2000}"]
    rest = "".join(f"{column} INTEGER, " for column in columns if column != name)
    computed = f"{name} INTEGER GENERATED ALWAYS AS (length(hex(zeroblob(100000000)))) VIRTUAL"
    values = ", ".join("1" for _ in columns[1:])
    return [
        f"DROP TABLE {table}",
        f"CREATE TABLE {table} ({rest}{computed})",
        f"INSERT INTO {table} VALUES ({values})",
    ]


def others(table, columns, rows, rng):
    """Tables, indexes and no tables."""
    ways = (
        [f"DROP TABLE {table}"],
        ["CREATE TABLE more (x)", "CREATE INDEX i ON more (x)"],
        [f"CREATE UNIQUE INDEX i ON {table} ({columns[0]}) WHERE {columns[-1]} > 0"],
        [f"CREATE INDEX i ON {table} (length(hex(zeroblob(10000000))))"],
        ["CREATE VIRTUAL TABLE more USING fts5(x)"],
        ["CREATE TEMP TABLE state (x)", "CREATE TABLE main.more AS SELECT * FROM sqlite_master"],
    )
    return pick(rng, ways)


def untyped(table, columns, rows, rng):
    """Every type in every column, and names of files that lead elsewhere."""
    values = rows.of(table)
    rows.database.execute(f"DROP TABLE {table}")
    rows.database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    for _, fields in values:
        fields[int(rng.integers(len(fields)))] = pick(rng, ("../../victim", "../1", *OTHERS))
        if rng.random() < 0.5:
            fields[0] = pick(rng, ("../../victim", "../segments/1", "1/../1", 1.0, "1", b"1"))
        rows.insert(table, fields)
    return []


def pragma(table, columns, rows, rng):
    name = pick(rng, ("user_version", "application_id"))
    return [f"PRAGMA {name} = {pick(rng, (0, 1, 2, 3, -1, 2**31 - 1))}"]


# Files that are something else


def mutate_files(case, rng):
    """A file, or a folder, is a link, a folder, a pipe, empty, or huge."""
    folder, old = case.folder, case.folder.parent / "moved"
    while os.path.lexists(old):  # by an earlier mutation of the same case
        old = old.with_name(f"{old.name}-")
    names = [internals.DATABASE + end for end in ("", "", "-wal", "-shm", "-journal")]
    names += ["writer.lock", "segments"]
    names += [str(path.relative_to(folder)) for path in case.segments()]
    path, kind = folder / pick(rng, names), pick(rng, (*LINKS, *FILES))
    case.say(f"{path.relative_to(folder)} is {kind}")
    if path.exists():
        os.rename(path, old)
    if kind in LINKS:
        targets = {"moved": old, None: path}
        path.symlink_to(targets.get(LINKS[kind]) or case.folder.parent / LINKS[kind])
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(rng.bytes(9000) if kind == "noise" else b"")
    if kind.startswith("huge"):
        if kind == "huge, but begins well" and old.is_file():
            path.write_bytes(old.read_bytes())
        os.truncate(path, 1 << 42)


LINKS = {  # what they lead to, beside the folder; None: to themselves
    "a link to what it was": "moved",
    "a link to a file of somebody else": "victim",
    "a link to nothing": "nothing",
    "a link to itself": None,
    "a link to zeros": "/dev/zero",
    "a link to a full device": "/dev/full",
}
FILES = ("folder", "pipe", "empty", "noise", "huge", "huge, but begins well")
