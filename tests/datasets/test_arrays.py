import io
import pickle
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from rankbits.datasets import load_array, load_columns
from rankbits.errors import FileFormatError, InputError


def write_parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


class Explosive:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


ARRAYS = [
    np.arange(12, dtype=np.uint8).reshape(4, 3),
    np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    np.array([5, -2, 7]),
    np.array([[True, False]]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.dtype))
def test_an_array_comes_back_from_npy_npz_and_safetensors(tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    np.savez_compressed(tmp_path / "x.npz", only=array)
    save_file({"only": array}, tmp_path / "x.safetensors")
    for name in ("x.npy", "x.npz", "x.safetensors"):
        loaded = load_array(tmp_path / name)
        assert loaded.dtype == array.dtype
        np.testing.assert_array_equal(loaded, array)


def test_npy_is_memory_mapped(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 2)))
    assert isinstance(load_array(tmp_path / "x.npy"), np.memmap)


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_a_key_names_one_of_several_arrays(tmp_path, kind):
    arrays = {"first": np.arange(3), "second": np.arange(4.0)}
    path = tmp_path / f"x.{kind}"
    np.savez(path, **arrays) if kind == "npz" else save_file(arrays, path)
    np.testing.assert_array_equal(load_array(path, "second"), arrays["second"])
    np.testing.assert_array_equal(load_array(f"{path}:first"), arrays["first"])
    with pytest.raises(InputError, match=r"several arrays.*first, second"):
        load_array(path)
    with pytest.raises(InputError, match=r"key must be one of first, second"):
        load_array(path, "third")


def test_a_file_whose_own_name_has_a_colon_is_not_split(tmp_path):
    np.save(tmp_path / "x.npy:2.npy", np.arange(3))
    np.testing.assert_array_equal(load_array(tmp_path / "x.npy:2.npy"), np.arange(3))


def test_parquet_lists_of_one_length_are_a_matrix(tmp_path):
    matrix = np.arange(6, dtype=np.float32).reshape(3, 2)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), 2)
    free = pa.array(matrix.tolist(), pa.list_(pa.float32()))
    for name, column in (("fixed", fixed), ("free", free)):
        path = write_parquet(tmp_path / f"{name}.parquet", x=column)
        np.testing.assert_array_equal(load_array(path), matrix)


def test_parquet_lists_in_several_row_groups_are_one_matrix(tmp_path):
    matrix = np.arange(20.0).reshape(10, 2)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), 2)
    pq.write_table(pa.table({"x": fixed}), tmp_path / "x.parquet", row_group_size=3)
    np.testing.assert_array_equal(load_array(tmp_path / "x.parquet"), matrix)


@pytest.mark.parametrize("kind", [pa.binary(2), pa.binary()])
def test_parquet_bytes_of_one_length_are_packed_rows(tmp_path, kind):
    rows = [b"\x01\xff", b"\x00\x10", b"ab"]
    path = write_parquet(tmp_path / "x.parquet", code=pa.array(rows, kind))
    np.testing.assert_array_equal(load_array(path), [[1, 255], [0, 16], [97, 98]])


@pytest.mark.parametrize("values", [["cat", "dog"], [3, 4], [True, False]])
def test_a_plain_parquet_column_is_one_dimensional(tmp_path, values):
    path = write_parquet(tmp_path / "x.parquet", y=pa.array(values))
    assert load_array(path).tolist() == values
    words = pa.array(["b", "a", "b"]).dictionary_encode()
    assert load_array(write_parquet(tmp_path / "d.parquet", y=words)).tolist() == ["b", "a", "b"]


def test_several_numeric_parquet_columns_are_a_matrix_and_a_key_names_one(tmp_path):
    path = write_parquet(tmp_path / "x.parquet", a=pa.array([1, 2]), b=pa.array([3, 4]))
    np.testing.assert_array_equal(load_array(path), [[1, 3], [2, 4]])
    np.testing.assert_array_equal(load_array(path, "b"), [3, 4])


def test_parquet_columns_that_make_no_matrix_are_listed(tmp_path):
    path = write_parquet(tmp_path / "x.parquet", code=pa.array([1, 2]), name=pa.array(["a", "b"]))
    with pytest.raises(InputError, match=r"several arrays.*code, name"):
        load_array(path)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([[1.0], [2.0, 3.0]]), "rows of one length.*1 to 2"),
        (pa.array([b"a", b"bc"]), "rows of one length.*1 to 2"),
        (pa.array([1, None]), "no nulls.*has 1"),
        (pa.array([[1.0, None]]), "lists of numbers without nulls"),
        (pa.array([["a"]]), "lists of numbers"),
        (pa.array([{"a": 1}]), "numbers, strings, lists"),
    ],
)
def test_a_parquet_column_that_is_no_array_is_refused(tmp_path, column, reason):
    path = write_parquet(tmp_path / "x.parquet", x=column)
    with pytest.raises(FileFormatError, match=reason):
        load_array(path)


def test_a_column_name_that_comes_twice_is_refused(tmp_path):
    twice = pa.table([pa.array(["a"]), pa.array(["b"])], names=["x", "x"])
    pq.write_table(twice, tmp_path / "x.parquet")
    with pytest.raises(FileFormatError, match=r"2 columns named 'x'"):
        load_array(tmp_path / "x.parquet", "x")


def test_columns_come_by_name_with_nan_for_null(tmp_path):
    path = write_parquet(tmp_path / "x.parquet", query=pa.array([0, 1]), AP=pa.array([0.5, None]))
    columns = load_columns(path)
    assert list(columns) == ["query", "AP"]
    np.testing.assert_array_equal(columns["AP"], [0.5, np.nan])


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet", "safetensors"])
@pytest.mark.parametrize("content", [b"", b"PK", b"not an array at all, only text\n" * 9])
def test_an_empty_or_foreign_file_is_named_in_one_line(tmp_path, kind, content):
    path = tmp_path / f"x.{kind}"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=path.name) as caught:
        load_array(path)
    assert "\n" not in str(caught.value)
    if not content:
        assert "is empty, 0 bytes" in str(caught.value)
    elif kind in ("npy", "npz"):
        assert f"not a .{kind} file: it starts with" in str(caught.value)


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet", "safetensors"])
def test_every_truncation_of_a_file_is_refused(tmp_path, kind):
    array = np.arange(40, dtype=np.float32).reshape(10, 4)
    whole = tmp_path / f"whole.{kind}"
    if kind == "npy":
        np.save(whole, array)
    elif kind == "npz":
        np.savez(whole, x=array)
    elif kind == "safetensors":
        save_file({"x": array}, whole)
    else:
        write_parquet(whole, **{f"c{i}": pa.array(array[:, i]) for i in range(4)})
    content = whole.read_bytes()
    np.testing.assert_array_equal(load_array(whole), array)
    path = tmp_path / f"cut.{kind}"
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(FileFormatError):
            load_array(path)


def test_a_pickle_is_never_opened(tmp_path):
    (tmp_path / "raw.npy").write_bytes(pickle.dumps(Explosive()))
    np.save(tmp_path / "object.npy", np.array([Explosive()], object), allow_pickle=True)
    member = io.BytesIO()
    np.save(member, np.array([Explosive()], object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "object.npz", "w") as archive:
        archive.writestr("x.npy", member.getvalue())
    for name in ("raw.npy", "object.npy", "object.npz"):
        with pytest.raises(FileFormatError, match=name):
            load_array(tmp_path / name)


def test_an_npz_member_that_is_no_array_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(FileFormatError, match=r"not a .npy"):
        load_array(tmp_path / "x.npz")


def test_what_is_no_number_or_text_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.array(["2020-01-01"], "datetime64[D]"))
    with pytest.raises(FileFormatError, match=r"numbers, bools or strings, got datetime64"):
        load_array(tmp_path / "x.npy")


def test_a_missing_file_a_folder_an_unknown_kind_and_a_needless_key_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    (tmp_path / "x.csv").write_text("1,2")
    for path, key, reason in [
        ("absent.npy", None, "there is no .*absent.npy"),
        (".", None, "must name a file"),
        ("x.csv", None, "must end in .npy, .npz, .parquet, .safetensors"),
        ("x.npy", "a", "key must not be given"),
    ]:
        with pytest.raises(InputError, match=reason):
            load_array(tmp_path / path, key)
    with pytest.raises(InputError, match=r"there is no"):
        load_columns(tmp_path / "absent.parquet")


def test_names_of_arrays_are_told_in_one_line_whatever_they_hold(tmp_path):
    np.savez(tmp_path / "two.npz", **{"a\nb": np.zeros(2), "c": np.ones(2)})
    with pytest.raises(InputError, match=r"holds several arrays.*: 'a\\nb', c$"):
        load_array(tmp_path / "two.npz")
