"""Collections of format 1 are read as they are, and converted when asked."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rankbits import BinaryCodes
from rankbits.cli import app
from rankbits.errors import InputError
from rankbits.index import Collection, HammingIndex

ARCHIVE = Path(__file__).parents[1] / "data" / "format1.zip"  # written by rankbits of that format


@pytest.fixture
def old(tmp_path):
    """A collection with a segment, marks of removal and codes not yet sealed; and its content."""
    folder = tmp_path / "old"
    with zipfile.ZipFile(ARCHIVE) as archive:
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
        assert after["format"] == 2
        assert after["segments"] == before["segments"]
        assert after["next_id"] == before["next_id"]
        assert collection.add(BinaryCodes(np.zeros((1, 3), np.uint8), 20)).tolist() == [6017]
    assert Collection.upgrade(folder) == 2
    assert len(HammingIndex.load(folder)) == len(content) + 1


def test_a_snapshot_of_format_1_is_of_the_format_of_today(old, tmp_path):
    folder, content = old
    with Collection.open(folder) as reader:
        reader.snapshot(tmp_path / "new")
    with Collection.open(tmp_path / "new", writable=True) as collection:
        assert collection.check()["format"] == 2
        assert content_of(collection) == content
