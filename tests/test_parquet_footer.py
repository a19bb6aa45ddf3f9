"""The footer of a Parquet file says the same here as in pyarrow, and damage is one sentence."""

import io
from contextlib import suppress
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits._parquet_footer import read_row_groups
from rankbits.errors import FileFormatError

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def written(**options):
    columns = {
        "number": pa.array(np.arange(1000)),
        "text": pa.array(["a", "bb", None, "dddd"] * 250),
        "list": pa.array([[1.0, 2.0], [], None, [3.0]] * 250),
        "fixed": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(3000, np.float32)), 3),
        "pair": pa.array([{"x": 1, "y": True}] * 1000),
    }
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 130, "compression": "zstd"},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
        {"write_page_checksum": True, "write_statistics": False},
    ],
)
def test_columns_are_those_that_pyarrow_tells_of(tmp_path, options):
    path = tmp_path / "file.parquet"
    path.write_bytes(written(**options))
    metadata = parquet.read_metadata(path)
    groups = read_row_groups(path)
    assert len(groups) == metadata.num_row_groups
    for number, columns in enumerate(groups):
        stored = metadata.row_group(number)
        expected = [stored.column(place) for place in range(stored.num_columns)]
        assert [c.path for c in columns] == [e.path_in_schema for e in expected]
        assert [c.n_values for c in columns] == [e.num_values for e in expected]
        assert [c.n_bytes for c in columns] == [e.total_uncompressed_size for e in expected]
        shared = ["DELTA_BYTE_ARRAY" in e.encodings for e in expected]
        assert [c.shares_prefixes for c in columns] == shared


@cache
def plain():
    return written()


@given(st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_footer_is_an_error_of_ours_or_read(tmp_path_factory, edits):
    """Edits count from the end, where the footer is."""
    raw = bytearray(plain())
    for place, value in edits:
        raw[-min(place, len(raw))] = value
    path = tmp_path_factory.getbasetemp() / "damaged.parquet"
    path.write_bytes(raw)
    groups = []
    with suppress(FileFormatError):
        groups = read_row_groups(path)
    assert all(column.n_values >= 0 for columns in groups for column in columns)


@pytest.mark.parametrize("raw", [b"", b"PAR1", b"PAR1" * 3, b"x" * 100, b"\xff" * 8 + b"PAR1"])
def test_what_is_no_parquet_file_is_refused(tmp_path, raw):
    (tmp_path / "file.parquet").write_bytes(raw)
    with pytest.raises(FileFormatError, match=r"file\.parquet is not a readable \.parquet file"):
        read_row_groups(tmp_path / "file.parquet")
