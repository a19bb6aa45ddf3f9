"""usearch holds what was handed over, finds the same distances, and gives everything back."""

import numpy as np
import pytest

from rankbits.errors import FileFormatError, InputError
from rankbits.index.interop import from_usearch, to_usearch

usearch = pytest.importorskip("usearch.index")


def bits_index(n_bits=16, **options):
    return usearch.Index(ndim=n_bits, metric="hamming", dtype="b1", **options)


@pytest.mark.parametrize("n_bits", [8, 12, 64, 100, 128])
def test_a_round_trip_keeps_ids_and_codes_and_usearch_finds_the_nearest(stock, n_bits):
    mine = stock(n_bits)
    made = to_usearch(mine.index, n_threads=1)
    found = made.search(mine.queries, 20, exact=True)
    assert mine.are_nearest(20, found.distances, found.keys)
    assert mine.is_in(from_usearch(made))


def test_a_file_of_usearch_is_read_without_what_was_removed(stock, tmp_path):
    mine = stock(64)
    made = to_usearch(mine.index, connectivity=8)
    gone = sorted(mine.items)[:5]
    made.remove(np.array(gone, np.uint64))
    made.save(tmp_path / "index.usearch")
    for key in gone:
        del mine.items[key]
    assert mine.is_in(from_usearch(tmp_path / "index.usearch"))
    assert from_usearch(str(tmp_path / "index.usearch"), kind="scan").kind == "scan"


def test_an_empty_index_stays_empty(empty, tmp_path):
    made = to_usearch(empty)
    made.save(tmp_path / "empty")
    for source in (made, tmp_path / "empty"):
        back = from_usearch(source)
        assert (len(back), back.n_bits) == (0, 16)


def test_more_items_than_a_block_come_back(monkeypatch, stock):
    mine = stock(64)
    for module in ("blocks", "usearch"):
        monkeypatch.setattr(f"rankbits.index.interop.{module}.BLOCK", 7)
    assert mine.is_in(from_usearch(to_usearch(mine.index)))


def test_keys_beyond_int64_are_refused():
    made = bits_index()
    made.add(np.array([2**63], np.uint64), np.zeros((1, 2), np.uint8))
    with pytest.raises(
        InputError, match=r"ids must be from 0 to 2\*\*63 - 2, got 9223372036854775808"
    ):
        from_usearch(made)


def test_what_is_not_one_code_a_key_is_refused():
    with pytest.raises(InputError, match="one code per key, got an index with multi=True"):
        from_usearch(bits_index(multi=True))
    with pytest.raises(
        InputError, match=r"must be a usearch Index of dtype b1 or a path, got .*F32"
    ):
        from_usearch(usearch.Index(ndim=4, dtype="f32"))
    with pytest.raises(InputError, match="must be a usearch Index of dtype b1 or a path, got list"):
        from_usearch([1, 2])


def test_damaged_foreign_and_missing_files_are_named(stock, tmp_path):
    path = tmp_path / "index.usearch"
    to_usearch(stock(64).index).save(path)
    whole = path.read_bytes()
    for size in (0, 3, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError, match=r"index.usearch is not a usearch index"):
            from_usearch(path)
    path.write_bytes(b"something else" * 100)
    with pytest.raises(FileFormatError, match=r"index.usearch is not a usearch index"):
        from_usearch(path)
    with pytest.raises(InputError, match=r"there is no .*nowhere"):
        from_usearch(tmp_path / "nowhere")
