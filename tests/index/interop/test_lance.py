"""LanceDB holds what was handed over, finds the same distances, and gives everything back."""

import numpy as np
import pytest

from rankbits.errors import FileFormatError, InputError
from rankbits.index.interop import from_lance, to_lance

pa = pytest.importorskip("pyarrow")
lancedb = pytest.importorskip("lancedb")


@pytest.mark.parametrize("n_bits", [8, 12, 64, 128])
def test_a_round_trip_keeps_ids_and_codes_and_lance_finds_the_nearest(stock, n_bits, tmp_path):
    mine = stock(n_bits)
    table = to_lance(mine.index, tmp_path, "codes")
    found = [
        table.search(query).distance_type("hamming").limit(20).to_arrow() for query in mine.queries
    ]
    distances = [one["_distance"].to_pylist() for one in found]
    assert mine.are_nearest(20, distances, [one["id"].to_pylist() for one in found])
    assert mine.is_in(from_lance(tmp_path, "codes"))


def test_what_lance_deletes_does_not_come_back(stock, tmp_path):
    mine = stock(64)
    table = to_lance(mine.index, str(tmp_path), "codes")
    gone = sorted(mine.items)[:9]
    table.delete(f"id <= {gone[-1]}")
    for item in gone:
        del mine.items[item]
    assert mine.is_in(from_lance(str(tmp_path), "codes", kind="scan"))


def test_more_items_than_a_block_come_back(monkeypatch, stock, tmp_path):
    mine = stock(64)
    for module in ("blocks", "lance"):
        monkeypatch.setattr(f"rankbits.index.interop.{module}.BLOCK", 50)
    to_lance(mine.index, tmp_path, "codes")
    assert mine.is_in(from_lance(tmp_path, "codes"))


def test_an_empty_index_stays_empty(empty, tmp_path):
    to_lance(empty, tmp_path, "codes")
    back = from_lance(tmp_path, "codes")
    assert (len(back), back.n_bits) == (0, 16)


def test_a_table_that_is_there_is_replaced_only_on_demand(stock, empty, tmp_path):
    mine = stock(64)
    to_lance(empty, tmp_path, "codes")
    with pytest.raises(InputError, match=r"table 'codes' cannot be created: .*already exists"):
        to_lance(mine.index, tmp_path, "codes")
    to_lance(mine.index, tmp_path, "codes", overwrite=True)
    assert mine.is_in(from_lance(tmp_path, "codes"))


def test_a_table_of_others_is_read_with_the_bits_that_are_given(tmp_path):
    codes = pa.array([[1, 16], [2, 0]], pa.list_(pa.uint8(), 2))
    rows = pa.table({"key": pa.array([7, 3], pa.int32()), "code": codes})
    lancedb.connect(tmp_path).create_table("others", rows)
    back = from_lance(tmp_path, "others", n_bits=12, id_column="key", code_column="code")
    assert (back.n_bits, back.codes([7, 3]).packed.tolist()) == (12, [[1, 16], [2, 0]])
    numbered = from_lance(tmp_path, "others", id_column=None, code_column="code")
    assert (numbered.n_bits, numbered.ids.tolist()) == (16, [0, 1])
    with pytest.raises(InputError, match="must have one column 'vector', it has key, code"):
        from_lance(tmp_path, "others", id_column="key")
    with pytest.raises(InputError, match=r"as bytes of one length, .* column 'key' is int32"):
        from_lance(tmp_path, "others", id_column="key", code_column="key")


def test_damaged_and_missing_tables_are_named(stock, tmp_path):
    to_lance(stock(64).index, tmp_path, "codes")
    with pytest.raises(InputError, match=r"table 'nothing' cannot be opened: .*not found"):
        from_lance(tmp_path, "nothing")
    with pytest.raises(InputError, match=r"must name a database of LanceDB, there is no .*nowhere"):
        from_lance(tmp_path / "nowhere", "codes")
    assert not (tmp_path / "nowhere").exists()
    data = max(tmp_path.glob("codes.lance/data/*"), key=lambda file: file.stat().st_size)
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    with pytest.raises(FileFormatError, match=r"the table 'codes' in .* cannot be read"):
        from_lance(tmp_path, "codes")


@pytest.mark.parametrize("name", ["a/../b", 'a"; drop', ""])
def test_names_that_lance_does_not_take_are_refused(empty, tmp_path, name):
    with pytest.raises(InputError, match="cannot be created"):
        to_lance(empty, tmp_path / "database", name)
    with pytest.raises(InputError, match="must differ, got 'a' twice"):
        to_lance(empty, tmp_path, "codes", id_column="a", code_column="a")


def test_a_search_of_rankbits_and_of_lance_agree_on_distances(stock, tmp_path):
    mine = stock(64)
    table = to_lance(mine.index, tmp_path, "codes")
    ours, _ = mine.index.search(mine.queries, 30)
    theirs = [
        table.search(query).distance_type("hamming").limit(30).to_arrow()["_distance"].to_pylist()
        for query in mine.queries
    ]
    assert np.array_equal(ours, theirs)
