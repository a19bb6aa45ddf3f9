"""Collections of older formats: 1 is converted when asked, 2 by the first change."""

import sqlite3
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rankbits import BinaryCodes
from rankbits.cli import app
from rankbits.errors import FileFormatError, InputError
from rankbits.index import Collection, HammingIndex

ARCHIVES = Path(__file__).parents[1] / "data"  # written by rankbits of those formats


@pytest.fixture
def old(tmp_path):
    """A collection of format 1."""
    return unpacked("format1", tmp_path / "first")


@pytest.fixture
def second(tmp_path):
    """A collection of format 2."""
    return unpacked("format2", tmp_path)


def unpacked(name, tmp_path):
    """A collection with a segment, marks of removal and codes not yet sealed; and its content."""
    folder = tmp_path / "old"
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as archive:
        archive.extractall(folder)
    with np.load(folder / "content.npz") as arrays:
        content = dict(zip(arrays["ids"].tolist(), map(bytes, arrays["packed"]), strict=True))
    (folder / "content.npz").unlink()
    return folder, content


def content_of(index):
    return dict(zip(index.ids.tolist(), map(bytes, index.codes().packed), strict=True))


def test_format_1_is_read(old):
    folder, content = old
    with Collection.open(folder) as collection:
        assert content_of(collection) == content
        assert collection.check()["format"] == 1
        assert content_of(collection.refresh()) == content
    assert content_of(HammingIndex.load(folder, mmap=False)) == content


def test_format_1_is_not_changed_but_says_what_to_do(old):
    folder, content = old
    for write in (
        lambda: Collection.open(folder, writable=True),
        lambda: HammingIndex(20).save(folder),
    ):
        with pytest.raises(InputError, match="rankbits index upgrade"):
            write()
    assert content_of(HammingIndex.load(folder)) == content


def test_an_upgrade_keeps_everything_and_can_be_repeated(old):
    folder, content = old
    with Collection.open(folder) as reader:
        before = reader.info()
    result = CliRunner().invoke(app, ["index", "upgrade", str(folder)])
    assert result.exit_code == 0
    assert '"format_before": 1' in result.stdout
    with Collection.open(folder, writable=True) as collection:
        after = collection.check()
        assert content_of(collection) == content
        assert after["format"] == 3
        assert after["segments"] == before["segments"]
        assert after["next_id"] == before["next_id"]
        assert collection.add(BinaryCodes(np.zeros((1, 3), np.uint8), 20)).tolist() == [6017]
    assert Collection.upgrade(folder) == 3
    assert len(HammingIndex.load(folder)) == len(content) + 1


def test_a_snapshot_of_format_1_is_of_the_format_of_today(old, tmp_path):
    folder, content = old
    with Collection.open(folder) as reader:
        reader.snapshot(tmp_path / "new")
    with Collection.open(tmp_path / "new", writable=True) as collection:
        assert collection.check()["format"] == 3
        assert content_of(collection) == content


def test_format_2_is_read_and_searched_without_a_change(second):
    folder, content = second
    before = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with Collection.open(folder) as collection:
        assert content_of(collection) == content
        assert (collection.check()["format"], collection.model) == (2, None)
    assert {path.name: path.read_bytes() for path in folder.rglob("*.se*")} == {
        name: data for name, data in before.items() if name.endswith(".seg")
    }
    with Collection.open(folder) as collection:
        assert collection.info()["format"] == 2


@pytest.mark.parametrize("model", [None, "f00d"])
def test_the_first_change_of_format_2_makes_it_format_3_and_readers_follow(second, model):
    folder, content = second
    reader = Collection.open(folder)
    with Collection.open(folder, writable=True) as writer:
        assert writer.info()["format"] == 2
        new = BinaryCodes(np.zeros((1, 3), np.uint8), 20, model)
        content[int(writer.add(new)[0])] = bytes(3)
        assert content_of(writer) == content
        assert writer.info()["format"] == 3
        assert content_of(reader) == content
        assert (reader.info()["format"], reader.model) == (3, model)
        writer.remove([6000])
        del content[6000]
        assert content_of(reader) == content
    reader.close()
    with Collection.open(folder) as collection:
        assert content_of(collection) == content
        assert (collection.check()["format"], collection.model) == (3, model)


def test_a_change_of_format_2_that_fails_leaves_format_2(second, monkeypatch):
    folder, content = second
    with Collection.open(folder, writable=True) as writer:
        with monkeypatch.context() as patch:
            patch.setattr("rankbits.index.disk.tables.write_state", lambda *args: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                writer.remove([6000])
        assert content_of(writer) == content
        assert writer.info()["format"] == 2
        writer.remove([6000])
        assert writer.check()["format"] == 3


def test_format_2_is_upgraded_and_replaced(second, tmp_path):
    folder, content = second
    with Collection.open(folder) as collection:
        collection.snapshot(tmp_path / "copy")
    assert Collection.upgrade(folder) == 2
    for place in (folder, tmp_path / "copy"):
        with Collection.open(place) as collection:
            assert (collection.check()["format"], content_of(collection)) == (3, content)


def test_an_index_is_saved_over_format_2(second):
    folder, _ = second
    index = HammingIndex(20)
    index.add(BinaryCodes(np.ones((2, 3), np.uint8) << 4, 20, "f00d"))
    index.save(folder)
    back = HammingIndex.load(folder)
    assert (content_of(back), back.model) == (content_of(index), "f00d")


FORMATS = {(False, None): 3, (True, None): 4, (False, "items"): 5, (True, "items"): 6}


def sided_index(side, factors=False, model="f00d"):
    index = HammingIndex(20, factors=factors)
    codes = BinaryCodes(np.arange(9, dtype=np.uint8).reshape(3, 3) << 4, 20, model, side)
    index.add(codes, **({"factors": np.arange(6, dtype=np.uint8).reshape(3, 2)} if factors else {}))
    return index


def traits_of(index):
    return index.has_factors, index.side


@pytest.mark.parametrize("model", [None, "f00d"])
@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("factors", [False, True])
def test_a_collection_gets_a_format_of_its_side_with_the_first_codes_that_have_one(
    tmp_path, factors, sealed, model
):
    more = {"factors": np.zeros((1, 2), np.uint8)} if factors else {}
    plain, sided = (BinaryCodes(np.zeros((1, 3), np.uint8), 20, model, s) for s in (None, "items"))
    with Collection.create(tmp_path / "items", 20, factors=factors) as writer:
        writer.add(plain, **more)
        reader = Collection.open(tmp_path / "items")
        assert (reader.info()["format"], traits_of(reader)) == (3 + factors, (factors, None))
        assert "side" not in reader.info()
        writer.add(sided, **more)
        if sealed:
            writer.seal()
        for one in (writer, reader):
            assert (one.info()["format"], traits_of(one)) == (5 + factors, (factors, "items"))
            assert (one.info()["side"], one.codes().side, one.model) == ("items", "items", model)
        writer.add(plain, **more)
        assert (reader.side, len(reader), reader.check()["format"]) == ("items", 3, 5 + factors)
        reader.close()
    assert Collection.upgrade(tmp_path / "items") == 5 + factors
    with Collection.open(tmp_path / "items", writable=True) as writer:
        writer.remove([0])
        assert traits_of(writer) == (factors, "items")


def test_saving_over_a_collection_changes_its_format_with_its_side(tmp_path):
    indexes = {traits: sided_index(traits[1], traits[0]) for traits in FORMATS}
    sided_index(None).save(tmp_path / "items")
    with Collection.open(tmp_path / "items") as reader:
        for traits in (*FORMATS, *reversed(FORMATS)):
            indexes[traits].save(tmp_path / "items")
            assert (reader.info()["format"], traits_of(reader)) == (FORMATS[traits], traits)
            assert reader.codes() == indexes[traits].codes()


@pytest.mark.parametrize("traits", FORMATS)
@pytest.mark.parametrize("version", FORMATS.values())
def test_no_format_passes_for_another(tmp_path, traits, version):
    sided_index(traits[1], traits[0]).save(tmp_path / "items")
    with sqlite3.connect(tmp_path / "items" / "collection.sqlite") as database:
        database.execute(f"PRAGMA user_version = {version}")
    database.close()
    if version == FORMATS[traits]:
        assert traits_of(HammingIndex.load(tmp_path / "items")) == traits
    else:
        with pytest.raises(FileFormatError, match="state does not match its checksum"):
            HammingIndex.load(tmp_path / "items")


def test_codes_of_a_side_come_into_collections_of_older_formats(old, second):
    for number, (folder, content) in ((1, old), (2, second)):
        with Collection.open(folder) as reader:
            assert (reader.side, reader.codes().side) == (None, None)
        if number == 1:
            Collection.upgrade(folder)
        with Collection.open(folder, writable=True) as writer:
            key = int(writer.add(sided_index("items").codes([0]))[0])
        back = HammingIndex.load(folder)
        assert (back.side, back.model) == ("items", "f00d")
        assert content_of(back) == content | {key: bytes([0, 16, 32])}
        assert Collection.upgrade(folder) == 5
