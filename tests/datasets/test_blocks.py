"""Files read block by block hold the rows that they hold as a whole."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from rankbits.datasets import load_array
from rankbits.datasets.blocks import open_rows
from rankbits.errors import FileFormatError, InputError

X = np.random.default_rng(8).standard_normal((103, 4)).astype(np.float32)


def lists(x):
    return pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])


@pytest.fixture(params=["x.npy", "x.npz:x", "x.safetensors:x", "x.parquet:x", "columns.parquet"])
def path(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rankbits.datasets.blocks._BATCH_ROWS", 7)
    np.save("x.npy", X)
    np.savez("x.npz", x=X, other=np.zeros(3))
    save_file({"x": X, "other": X[:2]}, "x.safetensors")
    pq.write_table(pa.table({"x": lists(X), "y": list(range(103))}), "x.parquet", row_group_size=20)
    numbers = {name: X[:, k] for k, name in enumerate("abcd")}
    pq.write_table(pa.table(numbers), "columns.parquet", row_group_size=20)
    return request.param


def test_the_shape_is_known_before_the_rows_are_read(path):
    rows = open_rows(path)
    assert (rows.n_rows, rows.row_shape) == (103, (4,))


@pytest.mark.parametrize("step", [1, 6, 20, 33, 103, 500])
def test_blocks_are_the_rows_in_order(path, step):
    blocks = list(open_rows(path).blocks(0, step))
    assert [len(block) for block in blocks[:-1]] == [step] * (len(blocks) - 1)
    assert 0 < len(blocks[-1]) <= step
    assert np.array_equal(np.concatenate(blocks), load_array(path))


@pytest.mark.parametrize("step", [1, 6, 20, 33])
def test_a_reader_who_starts_later_sees_the_same_blocks(path, step):
    rows = open_rows(path)
    blocks = list(rows.blocks(0, step))
    for k in (1, 2, len(blocks) - 1):
        later = list(rows.blocks(k * step, step))
        assert len(later) == len(blocks) - k
        assert all(map(np.array_equal, later, blocks[k:]))


def test_row_groups_before_the_start_are_not_read(path):
    if not path.startswith("x.parquet"):
        pytest.skip("only .parquet has row groups")
    rows = open_rows(path)
    content = bytearray(Path("x.parquet").read_bytes())
    start = pq.read_metadata("x.parquet").row_group(0).column(0).data_page_offset
    content[start : start + 40] = bytes(40)
    Path("x.parquet").write_bytes(content)
    assert np.array_equal(next(rows.blocks(20, 20)), X[20:40])
    with pytest.raises(FileFormatError, match=r"x.parquet is not a readable .parquet"):
        list(rows.blocks(0, 20))


def test_images_are_rows_of_more_dimensions(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 8, 8, 3), np.uint8))
    assert open_rows(tmp_path / "x.npy").row_shape == (8, 8, 3)


def test_what_has_no_rows_of_numbers_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("flat.npy", np.zeros(9))
    np.save("words.npy", np.array([["a", "b"]]))
    pq.write_table(pa.table({"w": ["a", "b"]}), "words.parquet")
    for name in ("flat.npy", "words.npy", "words.parquet"):
        with pytest.raises(InputError, match=f"{name} must hold rows of numbers"):
            open_rows(name)
    for name, content in (("empty.parquet", b""), ("cut.parquet", b"PAR1")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileFormatError, match=name):
            open_rows(name)
    with pytest.raises(InputError, match=r"there is no absent.parquet"):
        open_rows("absent.parquet")


def test_rows_that_change_their_length_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("rankbits.datasets.blocks._BATCH_ROWS", 2)
    rows = [[1.0, 2.0]] * 4 + [[1.0, 2.0, 3.0]] * 4
    pq.write_table(pa.table({"x": rows}), tmp_path / "x.parquet")
    with pytest.raises(FileFormatError, match="must hold rows of one shape"):
        list(open_rows(tmp_path / "x.parquet").blocks(0, 3))
