"""Small files that unpack to more than the limit are refused before the memory is taken."""

import io
import os
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankbits import TieHistogram, _unpacking
from rankbits._unpacking import unpack_limit
from rankbits.datasets import load_array, load_codes, load_columns, load_features
from rankbits.datasets.blocks import open_rows
from rankbits.errors import FileFormatError, InputError
from rankbits.evaluation import load_per_query

LIMIT = 1_000_000
BEYOND = rf"would unpack to \d+ bytes, the limit is {LIMIT} .* set RANKBITS_UNPACK_BYTES=\d+"


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setenv("RANKBITS_UNPACK_BYTES", str(LIMIT))


def test_the_limit_is_a_gibibyte_or_20_times_the_file_or_what_the_environment_says(
    tmp_path, monkeypatch
):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    assert unpack_limit(path) == 2**30
    os.truncate(path, 10**9)
    assert unpack_limit(path) == 20 * 10**9
    monkeypatch.setenv("RANKBITS_UNPACK_BYTES", "12345")
    assert unpack_limit(path) == 12345


@pytest.mark.parametrize("number", ["1GB", "-1", "1.5", " 1"])
def test_a_limit_that_is_no_number_is_refused(tmp_path, monkeypatch, number):
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(3))
    monkeypatch.setenv("RANKBITS_UNPACK_BYTES", number)
    with pytest.raises(InputError, match="RANKBITS_UNPACK_BYTES must be a number of bytes, got"):
        load_array(tmp_path / "x.npz")


def test_an_npz_beyond_the_limit_is_refused_by_every_reader(tmp_path, small_limit):
    many = np.zeros((LIMIT, 2), np.uint8)
    np.savez_compressed(tmp_path / "x.npz", x=many, small=np.zeros((3, 1), np.uint8))
    for read in (load_array, load_codes, open_rows):
        with pytest.raises(FileFormatError, match=BEYOND):
            read(f"{tmp_path}/x.npz:x")
    assert len(load_array(f"{tmp_path}/x.npz:small")) == 3
    np.savez_compressed(tmp_path / "features.npz", x_train=many, y_train=np.zeros(LIMIT, int))
    with pytest.raises(FileFormatError, match=BEYOND):
        load_features(tmp_path / "features.npz")
    counts = np.zeros((LIMIT // 16, 2, 2), np.int64)
    TieHistogram(counts, [0, 1]).save(tmp_path / "ties.npz")
    with pytest.raises(FileFormatError, match=BEYOND):
        TieHistogram.load(tmp_path / "ties.npz")


def test_what_the_error_proposes_helps(tmp_path, small_limit, monkeypatch):
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(LIMIT))
    with pytest.raises(FileFormatError) as error:
        load_array(tmp_path / "x.npz")
    variable, number = str(error.value).rsplit(" ", 1)[1].split("=")
    monkeypatch.setenv(variable, number)
    assert len(load_array(tmp_path / "x.npz")) == LIMIT


def forged_npz(path, shape, data):
    """An array whose header says more than its entry holds."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", header.getvalue() + data)


@pytest.mark.parametrize("shape", [(10**12,), (2**40, 2**40), (7,)])
def test_a_header_that_tells_of_more_than_there_is_is_refused(tmp_path, shape):
    forged_npz(tmp_path / "x.npz", shape, b"\0" * 48)
    with pytest.raises(FileFormatError, match=r"header of 'x.npy' promises \d+ bytes, it has 48"):
        load_array(tmp_path / "x.npz")


N = 200_000
LONG = "x" * 5_000
COLUMNS = {
    "numbers of one value": pa.array(np.zeros(N)),
    "lists": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(4 * N, np.float32)), 4),
    "lists of any length": pa.array([[0.0] * 1000] * 1000),
    "bytes of one length": pa.array([b"x" * 50] * N, pa.binary(50)),
    "bytes": pa.array([LONG.encode()] * 1000, pa.binary()),
    "strings": pa.array([LONG] * 1000),
    "large strings": pa.array([LONG] * 1000, pa.large_string()),
    "a dictionary": pa.DictionaryArray.from_arrays(np.zeros(1000, np.int32), [LONG]),
    "lists of strings": pa.array([[LONG] * 1000]),
    "one long string": pa.array(["a"] * 999 + [LONG]),
    "structs": pa.StructArray.from_arrays([pa.array(np.zeros(N))], ["inner"]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_parquet_column_beyond_the_limit_is_refused(tmp_path, small_limit, kind):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a.b": COLUMNS[kind], "n": np.zeros(len(COLUMNS[kind]))}), path)
    assert path.stat().st_size < LIMIT / 10
    with pytest.raises(FileFormatError, match=BEYOND):
        load_array(path, "a.b")


def test_strings_that_share_prefixes_are_refused(tmp_path, small_limit):
    path = tmp_path / "x.parquet"
    texts = pa.table({"x": [LONG + str(k) for k in range(2000)]})
    pq.write_table(texts, path, use_dictionary=False, column_encoding={"x": "DELTA_BYTE_ARRAY"})
    with pytest.raises(FileFormatError, match=BEYOND):
        load_array(path)


def test_columns_and_per_query_values_beyond_the_limit_are_refused(tmp_path, small_limit):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"query": np.arange(N), "AP": np.zeros(N)}), path)
    for read in (load_columns, load_per_query, load_array):
        with pytest.raises(FileFormatError, match=BEYOND):
            read(path)


def test_rows_read_block_by_block_are_limited_by_row_group(tmp_path, small_limit):
    path = tmp_path / "x.parquet"
    table = pa.table({"x": COLUMNS["lists"]})
    pq.write_table(table, path, row_group_size=N // 8)
    assert sum(len(block) for block in open_rows(path).blocks(0, 1000)) == N
    pq.write_table(table, path, row_group_size=N)
    with pytest.raises(FileFormatError, match=BEYOND):
        open_rows(path)


def test_repeated_bytes_are_read_a_few_rows_at_a_time(tmp_path, small_limit, monkeypatch):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": COLUMNS["bytes"]}), path)
    sizes = []
    read = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda s, n, **k: (sizes.append(n), read(s, n, **k))[1]
    )
    assert sum(len(block) for block in open_rows(path).blocks(0, 1000)) == 1000
    assert max(sizes) <= LIMIT // len(LONG)


@pytest.mark.parametrize("kind", ["bytes", "strings", "large strings", "a dictionary"])
def test_strings_within_the_limit_are_read_whatever_their_bound_is(tmp_path, monkeypatch, kind):
    """The quick bound, all as long as their column, fails; the exact size does not."""
    path = tmp_path / "x.parquet"
    rng = np.random.default_rng(0)
    texts = [f"{number:09d}" for number in rng.integers(0, 10**9, 5000)]
    values = [text.encode() for text in texts] if kind == "bytes" else texts
    column = pa.array(values, pa.large_string() if kind == "large strings" else None)
    column = column.dictionary_encode() if kind == "a dictionary" else column
    pq.write_table(pa.table({"x": column}), path, row_group_size=1000)
    expected = load_array(path)
    monkeypatch.setenv("RANKBITS_UNPACK_BYTES", str(LIMIT))
    assert np.array_equal(load_array(path), expected)
    assert len(load_columns(path)["x"]) == 5000


def test_a_bomb_takes_no_memory_under_the_usual_limit(tmp_path):
    path = tmp_path / "bomb.parquet"
    zeros = pa.table({"x": np.zeros(4_000_000)})
    with pq.ParquetWriter(path, zeros.schema) as writer:
        for _ in range(40):
            writer.write_table(zeros)
    script = """
import resource, sys
from rankbits.datasets import load_array
from rankbits.errors import FileFormatError
import pyarrow.parquet
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    load_array(sys.argv[1])
except FileFormatError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60
    )
    grown_kb, message = done.stdout.split(" ", 1)
    assert int(grown_kb) < 64 * 1024
    assert "would unpack to 1280000000 bytes, the limit is 1073741824 for a file of" in message


def test_every_file_that_is_small_is_read(tmp_path):
    assert _unpacking.VARIABLE not in os.environ
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(LIMIT))
    assert len(load_array(tmp_path / "x.npz")) == LIMIT
