"""A damaged collection is refused by name; what is served is what was written."""

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from rankbits import BinaryCodes
from rankbits.errors import FileFormatError, InputError
from rankbits.index import Collection, HammingIndex
from rankbits.index.store.part import Part
from rankbits.index.store.segment import Segment


def random_codes(rng, n, n_bits):
    return BinaryCodes(np.packbits(rng.integers(0, 2, (n, n_bits)), axis=1), n_bits)


def content(found):
    return dict(zip(found.ids.tolist(), map(bytes, found.codes().packed), strict=True))


@pytest.fixture
def folder(tmp_path, rng):
    """Two segments, marks of removal in one of them, and codes not yet sealed."""
    folder = tmp_path / "collection"
    with Collection.create(folder, 12) as collection:
        collection.add(random_codes(rng, 200, 12))
        collection.seal()
        collection.add(random_codes(rng, 64, 12), ids=np.arange(64) * 9 + 1000)
        collection.seal()
        collection.remove([3, 77])
        collection.add(random_codes(rng, 5, 12), ids=[500, 505, 501, 502, 7000])
    return folder


def refused(folder, match="damaged|is no|truncated|unfinished"):
    with pytest.raises(FileFormatError, match=match) as error:
        HammingIndex.load(folder)
    assert str(folder) in str(error.value)


def altered(folder, *statements):
    with closing(sqlite3.connect(folder / "collection.sqlite")) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


def test_a_changed_byte_of_the_manifest_is_noticed_or_without_effect(folder, rng):
    path, before = folder / "collection.sqlite", content(HammingIndex.load(folder))
    raw = path.read_bytes()
    used = np.flatnonzero(np.frombuffer(raw, np.uint8))
    n_refused = 0
    for place in [*range(100), *rng.choice(used, 400, replace=False).tolist()]:
        flipped = raw[place] ^ 1 << int(rng.integers(8))
        path.write_bytes(raw[:place] + bytes([flipped]) + raw[place + 1 :])
        for name in ("-wal", "-shm", "-journal"):
            (folder / f"collection.sqlite{name}").unlink(missing_ok=True)
        try:
            found = content(HammingIndex.load(folder))
        except FileFormatError:
            n_refused += 1
        else:
            assert found == before, place
    assert n_refused > 200


def test_a_manifest_cut_anywhere_is_refused(folder):
    path = folder / "collection.sqlite"
    raw = path.read_bytes()
    for size in [len(raw) - 1, 0, 10, 100, 1000, *range(4096, len(raw), 4096)]:
        path.write_bytes(raw[:size])
        refused(folder)
        with pytest.raises(FileFormatError):
            Collection.open(folder, writable=True)
        if size == len(raw) - 1:
            continue
        with pytest.raises(FileFormatError):
            HammingIndex(12).save(folder)
        assert sorted(os.listdir(folder / "segments")) == ["2.seg", "4.seg"]


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("UPDATE codes SET codes = zeroblob(length(codes))", "row 5 of table codes does not"),
        ("UPDATE codes SET ids = zeroblob(length(ids))", "row 5 of table codes does not"),
        ("UPDATE removed SET marks = zeroblob(length(marks))", "row 2 of table removed does not"),
        ("UPDATE parts SET n_alive = n WHERE number = 2", "row 2 of table parts does not"),
        ("UPDATE state SET n_bits = 11", "row 1 of table state does not"),
        ("UPDATE state SET change = 'x'", "row 1 of table state does not"),
        ("UPDATE state SET crc = NULL", "row 1 of table state does not"),
        ("DELETE FROM codes", "lacks the codes of part 5"),
        ("DELETE FROM parts WHERE number = 4", "it has 2 parts of 3"),
        ("DELETE FROM state", "it has no state"),
        ("DELETE FROM removed", "marks of part 2 leave 200 items, not 198"),
        ("DROP TABLE removed", "tables are not those of a collection"),
        ("CREATE VIEW more AS SELECT 1", "tables are not those of a collection"),
        (
            "PRAGMA user_version = 7",
            "version 7 of the format, this rankbits reads 1, 2, 3, 4, 5, 6",
        ),
        ("PRAGMA user_version = 4", "row 1 of table state does not match its checksum"),
        ("PRAGMA user_version = 2", "tables are not those of a collection"),
        ("UPDATE state SET model = 'f00d'", "row 1 of table state does not match its checksum"),
        ("PRAGMA application_id = 7", "is no collection of rankbits"),
    ],
)
def test_rows_that_are_not_as_they_were_written_are_named(folder, statement, match):
    altered(folder, statement)
    refused(folder, match)


def test_a_segment_that_is_missing_swapped_or_of_another_collection_is_named(folder, tmp_path, rng):
    one, two = folder / "segments" / "2.seg", folder / "segments" / "4.seg"
    shutil.copy(one, tmp_path / "kept")
    one.unlink()
    refused(folder, r"2\.seg is missing")
    os.rename(two, one)
    shutil.copy(tmp_path / "kept", two)
    refused(folder, r"2\.seg is another segment than the database names")
    with Collection.create(tmp_path / "other", 13) as other:
        other.add(random_codes(rng, 200, 13))
        other.seal()
    shutil.copy(tmp_path / "other" / "segments" / "2.seg", one)
    refused(folder, r"2\.seg must have codes of 12 bits, it has 13")
    with Collection.create(tmp_path / "twin", 12) as other:
        other.add(random_codes(rng, 200, 12))
        other.seal()
    shutil.copy(tmp_path / "twin" / "segments" / "2.seg", one)
    refused(folder, r"2\.seg is another segment than the database names")


def test_damage_that_a_reader_meets_later_is_refused_too(folder, rng):
    with Collection.open(folder, writable=True) as writer, Collection.open(folder) as reader:
        assert len(reader) == 267
        writer.compact()
        writer.seal()
        (path,) = (folder / "segments").glob("*.seg")
        raw = bytearray(path.read_bytes())
        raw[5000] ^= 16
        path.write_bytes(raw)
        with pytest.raises(FileFormatError, match=r"\.seg is damaged"):
            reader.search(random_codes(rng, 1, 12), 3)
        raw[5000] ^= 16
        path.write_bytes(raw)
        assert len(reader.search(random_codes(rng, 1, 12), 300, "complete").ids) == 267


def test_a_check_finds_an_id_that_is_there_twice(folder, rng):
    with Collection.open(folder, writable=True) as collection:

        def added_twice(state, builder):
            part = Part.of(state.next_part, Segment.of(random_codes(rng, 1, 12), np.array([1009])))
            return replace(state, parts=(*state.parts, part), next_part=part.number + 1), None

        collection._apply(added_twice)
        with pytest.raises(FileFormatError, match="id 1009 is in part 4 and in part 6"):
            collection.check()


def test_a_foreign_database_or_file_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "collection.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE mine (x)")
        database.commit()
    raw = path.read_bytes()
    refused(tmp_path, "is no collection of rankbits")
    with pytest.raises(FileFormatError, match="is no collection of rankbits"):
        Collection.create(tmp_path, 8)
    with pytest.raises(FileFormatError, match="is no collection of rankbits"):
        HammingIndex(8).save(tmp_path)
    assert path.read_bytes() == raw
    path.write_text("some notes, of no importance " * 100)
    refused(tmp_path, "file is not a database")


def test_segments_without_a_manifest_are_not_overwritten(folder):
    os.remove(folder / "collection.sqlite")
    for write in (lambda: Collection.create(folder, 8), lambda: HammingIndex(8).save(folder)):
        with pytest.raises(FileFormatError, match="it holds segments, but no"):
            write()
    assert sorted(os.listdir(folder / "segments")) == ["2.seg", "4.seg"]


def test_what_a_kill_left_behind_is_swept_by_the_next_writer_only(folder):
    before = content(HammingIndex.load(folder))
    for name in ("9.seg", ".3.seg.0123abcd"):
        (folder / "segments" / name).write_bytes(b"half")
    assert content(HammingIndex.load(folder)) == before
    assert len(os.listdir(folder / "segments")) == 4
    with Collection.open(folder, writable=True) as collection:
        assert sorted(os.listdir(folder / "segments")) == ["2.seg", "4.seg"]
        assert content(collection) == before


def test_a_creation_that_was_cut_can_be_repeated(tmp_path, rng):
    folder = tmp_path / "c"
    with Collection.create(folder, 12) as collection:
        collection.add(random_codes(rng, 50, 12))
        collection.seal()
    os.rename(folder / "collection.sqlite", folder / ".collection.sqlite.0123abcd")
    with pytest.raises(InputError, match="must hold a collection, there is no"):
        Collection.open(folder)
    with Collection.create(folder, 16) as collection:
        assert collection.n_bits == 16
    assert sorted(os.listdir(folder)) == ["collection.sqlite", "segments", "writer.lock"]
    assert os.listdir(folder / "segments") == []
