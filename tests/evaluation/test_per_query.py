import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankbits import BinaryCodes, affinity, evaluate
from rankbits.errors import FileFormatError, InputError
from rankbits.evaluation import load_per_query, save_per_query


@pytest.fixture
def evaluation():
    codes = BinaryCodes.from_bits([[0, 0], [0, 1], [1, 1]])
    return evaluate(codes, codes, affinity.classes([7, 9, 8], [7, 8, 7]), ["AP", "P@r1"])


def test_values_come_back_with_nan_where_undefined(tmp_path, evaluation):
    save_per_query(evaluation, tmp_path / "v.parquet")
    result = load_per_query(tmp_path / "v.parquet")
    assert list(result) == ["AP", "P@r1"]
    for name, values in evaluation.per_query.items():
        np.testing.assert_array_equal(result[name], values)
    assert pq.read_table(tmp_path / "v.parquet")["AP"].null_count == 1


@pytest.mark.parametrize(
    "columns",
    [
        {"AP": [0.5]},
        {"query": [0, 1]},
        {"query": [1, 0], "AP": [0.5, 0.5]},
        {"query": [0, 1], "AP": ["a", "b"]},
        {"query": ["a"], "AP": [0.5]},
    ],
)
def test_another_table_is_refused(tmp_path, columns):
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    with pytest.raises(FileFormatError, match=r"v\.parquet"):
        load_per_query(tmp_path / "v.parquet")


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, evaluation, monkeypatch):
    path = tmp_path / "v.parquet"
    save_per_query(evaluation, path)
    before = path.read_bytes()

    def half(table, file):
        file.write(b"half of it")
        raise OSError("disk full")

    monkeypatch.setattr(pq, "write_table", half)
    with pytest.raises(OSError, match="disk full"):
        save_per_query(evaluation, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["v.parquet"]
    with pytest.raises(InputError, match="there is no"):
        save_per_query(evaluation, tmp_path / "absent" / "v.parquet")
