"""A Parquet file tells its bits, comes back whole, and is refused if it is damaged or not codes."""

import numpy as np
import pytest

from rankbits.codes.arrow import Columns, blocks_of
from rankbits.errors import FileFormatError, InputError
from rankbits.index.interop import from_parquet, to_parquet

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def write(path, **columns):
    parquet.write_table(pa.table(columns), path)
    return path


def codes_of(*rows):
    return pa.array([bytes(row) for row in rows], pa.binary(2))


@pytest.mark.parametrize("n_bits", [8, 12, 64, 128])
def test_a_round_trip_keeps_ids_codes_and_bits(stock, n_bits, tmp_path):
    mine = stock(n_bits)
    to_parquet(mine.index, tmp_path / "codes.parquet")
    assert mine.is_in(from_parquet(tmp_path / "codes.parquet"))
    table = parquet.read_table(tmp_path / "codes.parquet")
    assert table.schema.field("code").type == pa.binary(-(-n_bits // 8))
    assert table.schema.metadata[b"rankbits.n_bits"] == str(n_bits).encode()
    stored = dict(zip(table["id"].to_pylist(), table["code"].to_pylist(), strict=True))
    assert stored == {i: np.packbits(bits).tobytes() for i, bits in mine.items.items()}


def test_row_groups_are_written_and_read_one_at_a_time(stock, tmp_path, monkeypatch):
    mine = stock(64)
    to_parquet(mine.index, tmp_path / "codes.parquet", row_group=50)
    with parquet.ParquetFile(tmp_path / "codes.parquet") as file:
        assert file.num_row_groups == 6
    monkeypatch.setattr("rankbits.codes.stored.BLOCK", 33)  # slices of row groups
    assert mine.is_in(from_parquet(tmp_path / "codes.parquet"))


def test_row_groups_have_the_size_that_is_wanted_whatever_a_block_is(stock, tmp_path, monkeypatch):
    mine = stock(64)
    monkeypatch.setattr("rankbits.index.interop.blocks.BLOCK", 7)
    to_parquet(mine.index, tmp_path / "codes.parquet", row_group=200)
    with parquet.ParquetFile(tmp_path / "codes.parquet") as file:
        assert [file.metadata.row_group(i).num_rows for i in range(2)] == [200, 57]
    assert mine.is_in(from_parquet(tmp_path / "codes.parquet"))


def test_slices_of_columns_are_read_where_they_begin():
    batch = pa.record_batch({"id": [4, 5, 6], "code": codes_of((1, 2), (3, 4), (5, 6))})
    lists = pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.uint8(), 2))
    for column in (batch["code"], lists):
        sliced = pa.record_batch({"id": batch["id"], "code": column}).slice(1)
        [(ids, packed)] = blocks_of([sliced], Columns("id", "code"), "a table")
        assert (ids.tolist(), packed.tolist()) == ([5, 6], [[3, 4], [5, 6]])


def test_rows_are_numbered_through_all_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("rankbits.codes.stored.BLOCK", 2)
    path = write(tmp_path / "file", code=codes_of((1, 1), (2, 2), (3, 3)))
    back = from_parquet(path, id_column=None)
    assert back.codes([2, 1, 0]).packed.tolist() == [[3, 3], [2, 2], [1, 1]]


def test_an_empty_index_stays_empty(empty, tmp_path):
    to_parquet(empty, tmp_path / "codes.parquet")
    back = from_parquet(tmp_path / "codes.parquet", kind="scan")
    assert (len(back), back.n_bits, back.kind) == (0, 16, "scan")


def test_a_file_of_others_is_read_with_the_bits_that_are_given(tmp_path):
    path = write(tmp_path / "f", key=pa.array([7, 3], pa.uint32()), bits=codes_of((1, 16), (2, 0)))
    back = from_parquet(path, n_bits=12, id_column="key", code_column="bits")
    assert back.codes([7, 3]).packed.tolist() == [[1, 16], [2, 0]]
    assert back.n_bits == 12
    numbered = from_parquet(path, id_column=None, code_column="bits")
    assert (numbered.ids.tolist(), numbered.n_bits) == ([0, 1], 16)


def test_lists_of_bytes_are_codes_too(tmp_path):
    lists = pa.array([[1, 16], [2, 0]], pa.list_(pa.uint8(), 2))
    back = from_parquet(write(tmp_path / "file", id=[5, 6], code=lists))
    assert back.codes([5, 6]).packed.tolist() == [[1, 16], [2, 0]]


GOOD = codes_of((1, 16), (2, 0))
WRONG = {
    "no code": ({"id": [1, 2]}, "must have one column 'code', it has id"),
    "no id": ({"code": GOOD}, "must have one column 'id', it has code"),
    "ids of text": ({"id": ["a", "b"], "code": GOOD}, "ids as integers, column 'id' is string"),
    "codes of text": ({"id": [1, 2], "code": ["a", "b"]}, "as bytes of one length, .* is string"),
    "null id": ({"id": [1, None], "code": GOOD}, "no nulls, column 'id' has some"),
    "null code": (
        {"id": [1, 2], "code": pa.array([b"ab", None], pa.binary(2))},
        "no nulls, column 'code' has some",
    ),
    "null in code": (
        {"id": [1], "code": pa.array([[1, None]], pa.list_(pa.uint8(), 2))},
        "no nulls, a code has some",
    ),
    "equal ids": ({"id": [1, 1], "code": GOOD}, "ids must differ, 1 comes more than once"),
    "huge ids": (
        {"id": pa.array([1, 2**63], pa.uint64()), "code": GOOD},
        r"ids must be from 0 to 2\*\*63 - 2",
    ),
}


@pytest.mark.parametrize(("columns", "message"), WRONG.values(), ids=WRONG)
def test_columns_that_are_no_index_are_refused(tmp_path, columns, message):
    with pytest.raises(InputError, match=message):
        from_parquet(write(tmp_path / "file.parquet", **columns))


def test_equal_ids_in_different_row_groups_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("rankbits.codes.stored.BLOCK", 1)
    path = write(tmp_path / "file.parquet", id=[4, 4], code=GOOD)
    with pytest.raises(FileFormatError, match=r"file.parquet cannot .* 4 exists already$"):
        from_parquet(path)


def test_bits_that_disagree_are_refused(stock, tmp_path):
    to_parquet(stock(12).index, tmp_path / "codes.parquet")
    with pytest.raises(
        InputError, match=r"n_bits is 16, but .*codes.parquet holds codes of 12 bit"
    ):
        from_parquet(tmp_path / "codes.parquet", n_bits=16)
    with pytest.raises(InputError, match=r"n_bits is 8, but .* holds codes of 2 bytes"):
        from_parquet(write(tmp_path / "file", id=[1, 2], code=GOOD), n_bits=8)


def test_damage_is_found(stock, tmp_path):
    path = tmp_path / "codes.parquet"
    mine = stock(64, n=40)
    to_parquet(mine.index, path)
    whole = path.read_bytes()
    for size in range(0, len(whole), 13):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError, match=r"codes\.parquet is not a readable \.parquet"):
            from_parquet(path)
    n_found = 0
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        try:
            assert mine.is_in(from_parquet(path))  # statistics may change without harm
        except InputError:
            n_found += 1
    assert n_found > len(whole) / 3 / 3


def test_arguments_are_checked(empty, tmp_path):
    with pytest.raises(InputError, match="id_column and code_column must differ, got 'a' twice"):
        to_parquet(empty, tmp_path / "f", id_column="a", code_column="a")
    with pytest.raises(InputError, match="row_group must be an integer from 1"):
        to_parquet(empty, tmp_path / "f", row_group=0)
    with pytest.raises(InputError, match=r"there is no .*nowhere"):
        from_parquet(tmp_path / "nowhere")


def test_a_small_file_that_would_unpack_to_gigabytes_is_refused(tmp_path, monkeypatch):
    n = 1 << 18
    codes = pa.array([b"\0\0"] * n, pa.binary(2))
    path = write(tmp_path / "bomb.parquet", id=pa.array(np.arange(n)), code=codes)
    assert len(from_parquet(path)) == n
    monkeypatch.setenv("RANKBITS_UNPACK_BYTES", "1000000")
    with pytest.raises(FileFormatError, match=r"would unpack to .* the limit is 1000000"):
        from_parquet(path)
