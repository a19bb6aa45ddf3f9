"""The tools themselves: what they repair is right, and what they record is all there is."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from disk_model import Disk, File
from hostile import MUTATIONS, NEED_SEGMENTS, Case, build_templates
from hostile_rows import Rows
from hostile_schema import mutate_files, mutate_schema
from hostile_segments import Segment
from storage import Call


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Collections of several shapes."""
    base = tmp_path_factory.mktemp("hostile")
    return base, build_templates(base)


def test_the_checksums_of_rows_are_those_that_rankbits_writes(base):
    folder, names = base
    n_rows = 0
    for number in range(len(names)):
        rows = Rows(folder / f"template-{number}")
        with closing(rows.database):
            for table in rows.columns:
                for row, fields in rows.of(table):
                    assert row[-1] == rows.crc_of(table, fields)
                    n_rows += 1
    assert n_rows > 15


def test_a_segment_that_is_put_together_again_is_the_same(base):
    folder, names = base
    for seed in range(20):
        case = Case(folder, names, seed)
        for path in case.segments():
            raw = path.read_bytes()
            with Segment(case, path) as segment:
                segment.lay_out(is_consistent=True)
            assert path.read_bytes() == raw


@pytest.mark.parametrize("mutation", [m for m in MUTATIONS if m is not mutate_files])
def test_a_mutation_changes_something_under_right_checksums(base, mutation):
    folder, names = base
    n_changed = dict.fromkeys(names, 0)
    for seed in range(60):
        case = Case(folder, names, seed)
        if mutation in NEED_SEGMENTS and not case.segments():
            continue
        before = contents(case)
        mutation(case, case.rng)
        assert "not repaired" not in "".join(case.words)
        n_changed[case.words[0].removesuffix(": ")] += contents(case) != before
        if mutation is not mutate_schema:
            rows = Rows(case.folder)
            with closing(rows.database):
                assert all(
                    row[-1] == rows.crc_of(t, f) for t in rows.columns for row, f in rows.of(t)
                )
    for name in ("listed ids", "factors"):
        assert n_changed[name] >= 2


def contents(case):
    with closing(sqlite3.connect(case.folder / "collection.sqlite")) as database:
        schema = database.execute("SELECT name, sql FROM sqlite_master").fetchall()
        version = database.execute("PRAGMA user_version").fetchone()
    raw = (case.folder / "collection.sqlite").read_bytes()  # a mutation closes what it opened
    return schema, version, raw, [path.read_bytes() for path in case.segments()]


def calls(*entries):
    return [Call(name, f"/r{path}", f"/r{other}" if other else "", at, 0, data)
            for name, path, other, at, data in entries]  # fmt: skip


def test_the_model_of_a_disk_keeps_what_was_synced_and_nothing_else_for_sure():
    disk = Disk("/r")
    for call in calls(
        ("create", "/a", "", 0, b""),
        ("write", "/a", "", 0, b"old"),
        ("sync", "/a", "", 0, b""),
        ("sync", "", "", 0, b""),
        ("write", "/a", "", 1, b"new"),
        ("rename", "/a", "/b", 0, b""),
        ("create", "/c", "", 0, b""),
    ):
        disk.apply(call)
    states = [
        {path: content(file) for path, file in names.items()}
        for names, content in disk.states(np.random.default_rng(0), 200)
    ]
    assert states[0] == {"a": b"old"}
    assert states[1] == {"b": b"onew", "c": b""}
    assert states[2] == {"b": b"old", "c": b""}
    assert states[3] == {"a": b"onew"}
    assert {tuple(sorted(state)) for state in states} == {("a",), ("b",), ("b", "c")}
    assert all(next(iter(state.values()))[:1] == b"o" for state in states)


def test_a_sync_of_a_folder_brings_what_was_done_before_in_others_too():
    disk = Disk("/r")
    for call in calls(
        ("mkdir", "/x", "", 0, b""),
        ("create", "/x/a", "", 0, b""),
        ("create", "/b", "", 0, b""),
        ("create", "/x/c", "", 0, b""),
        ("sync", "", "", 0, b""),
    ):
        disk.apply(call)
    assert sorted(next(disk.states(np.random.default_rng(0), 0))[0]) == ["b", "x", "x/a"]


def test_a_torn_write_leaves_whole_sectors():
    file = File(durable=bytes(2048), current=bytearray(2048))
    file.change(100, b"\1" * 1500)
    kinds = set()
    for seed in range(800):
        content = file.random(np.random.default_rng(seed))
        assert len(content) == 2048
        sectors = [content[at : at + 512] for at in range(0, 2048, 512)]
        kinds.add(tuple(bool(any(sector)) for sector in sectors))
        assert all(sector in (bytes(512), b"\1" * 512) for sector in sectors[1:3])
    assert len(kinds) == 16
