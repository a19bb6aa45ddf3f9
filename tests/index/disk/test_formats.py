"""Formats of collections: the number says whether items have factors, and their side."""

import sqlite3

import numpy as np
import pytest

from rankbits import BinaryCodes
from rankbits.errors import FileFormatError
from rankbits.index import Collection, HammingIndex

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


@pytest.mark.parametrize("version", [0, 1, 2, 7])
def test_a_format_of_no_release_is_refused_by_its_number(tmp_path, version):
    sided_index(None).save(tmp_path / "items")
    with sqlite3.connect(tmp_path / "items" / "collection.sqlite") as database:
        database.execute(f"PRAGMA user_version = {version}")
    database.close()
    with pytest.raises(FileFormatError, match=f"has version {version} of the format"):
        HammingIndex.load(tmp_path / "items")
