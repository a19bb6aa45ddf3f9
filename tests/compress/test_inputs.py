"""Vectors as they come in, and what is said about bad ones."""

import tracemalloc

import numpy as np
import pytest

from rankbits._mapped import MappedFile
from rankbits.compress import compress
from rankbits.compress._inputs import (
    digest,
    equal_items,
    hash_rows,
    open_vectors,
    profile_vectors,
    require_different,
)
from rankbits.compress._task import prepare_task
from rankbits.errors import InputError


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8"])
def test_what_kernels_read_is_mapped_and_not_copied(tmp_path, dtype):
    np.save(tmp_path / "x.npy", np.arange(12).reshape(4, 3).astype(dtype))
    rows = open_vectors("items", tmp_path / "x.npy")
    assert MappedFile.behind(rows) is not None
    assert rows.dtype == dtype


@pytest.mark.parametrize(
    "rows", [np.ones((3, 2), ">f4"), np.ones((3, 2), order="F"), np.ones((3, 2), int)]
)
def test_what_kernels_cannot_read_is_converted(rows):
    opened = open_vectors("items", rows)
    assert opened.flags.c_contiguous
    assert opened.dtype.isnative
    np.testing.assert_array_equal(opened, rows)


def test_a_parquet_file_becomes_a_mapped_copy(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
    table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(rows.ravel(), 4)})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=20)
    opened = open_vectors("items", tmp_path / "x.parquet", tmp_path)
    assert MappedFile.behind(opened) is not None
    np.testing.assert_array_equal(opened, rows)


def test_a_row_with_nan_is_named():
    rows = np.ones((1000, 3), np.float32)
    rows[700, 1] = np.nan
    with pytest.raises(InputError, match="items must be finite, row 700 has NaN"):
        profile_vectors("items", rows)


def test_vectors_without_any_difference_are_refused(vectors):
    with pytest.raises(InputError, match="all 5 rows are zero"):
        profile_vectors("items", np.zeros((5, 3)))
    with pytest.raises(InputError, match="all 5 rows are the same"):
        require_different("items", profile_vectors("items", np.ones((5, 3))))


def test_norms_zeros_and_copies_are_counted():
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
    profile = profile_vectors("items", rows)
    assert profile.norms.tolist() == [5.0, 0.0, 5.0, 1.0]
    assert (profile.n_zero, profile.n_duplicates) == (1, 1)


def test_hashes_differ_where_rows_do():
    rows = np.random.default_rng(0).integers(-1, 2, (3000, 7)).astype(np.int8)
    assert len(np.unique(hash_rows(rows))) == len(np.unique(rows, axis=0))


def test_the_item_that_equals_a_query_is_found_whatever_the_type():
    items = np.random.default_rng(0).standard_normal((500, 6)).astype(np.float16)
    queries = np.concatenate([items[[400, 3]].astype(np.float32), np.ones((1, 6), np.float32)])
    profile = profile_vectors("items", items)
    assert equal_items(queries, items, profile.hashes).tolist() == [400, 3, -1]


def test_a_query_that_bytes_cannot_hold_equals_no_item():
    items = np.random.default_rng(0).integers(-128, 128, (500, 6)).astype(np.int8)
    items[7] = 0
    queries = np.array([items[30], np.full(6, 0.5), items[3] + 256.0, np.zeros(6)])
    profile = profile_vectors("items", items)
    assert equal_items(queries, items, profile.hashes).tolist() == [30, -1, -1, 7]
    assert equal_items(queries[1:3], items, profile.hashes).tolist() == [-1, -1]


def test_vectors_on_one_line_can_be_ranked_by_their_distances():
    items = np.linspace(1, 2, 200)[:, None] * np.ones(32)
    queries = np.linspace(1, 2, 30)[:, None] * np.ones(32)
    task = prepare_task(items, queries, None, None, None, "l2", None, 0, None)
    assert len(task.items) == 200


def test_a_digest_depends_on_the_order():
    hashes = hash_rows(np.random.default_rng(0).standard_normal((9, 3)))
    assert digest(hashes) == digest(hashes.copy())
    assert digest(hashes) != digest(hashes[::-1])


BAD = {
    "queries of another width": ({"queries": np.ones((30, 5))}, "as many numbers as items"),
    "few queries": ({"queries": np.eye(32)[:9]}, "queries must be at least 20"),
    "queries with NaN": ({"queries": np.full((30, 32), np.nan)}, "queries must be finite"),
    "few items": ({"items": np.eye(32)}, "items must be at least 100"),
    "zeros": ({"items": np.zeros((200, 32))}, "all 200 rows are zero"),
    "constants": ({"items": np.ones((200, 32))}, "all 200 rows are the same"),
    "one direction": (
        {"items": np.linspace(1, 2, 200)[:, None] * np.ones(32, np.float16)},
        "all 200 rows are multiples of one",
    ),
    "huge numbers": ({"items": 1e180 * np.eye(200, 32)}, "up to 1e\\+15, .* row 0 has greater"),
    "text": ({"items": np.full((200, 32), "a")}, "items must be real numbers"),
    "a level of an unknown item": (
        {"judgements": [(0, 600, 1)]},
        "judgements must name an item from 0 to 599",
    ),
    "a level of an unknown query": ({"judgements": [(60, 0, 1)]}, "a query from 0 to 59"),
    "judgements and labels": (
        {"judgements": [(0, 0, 1)], "item_labels": np.zeros(600, int)},
        "judgements or labels, not both",
    ),
    "labels of one side": ({"item_labels": np.zeros(600, int)}, "query_labels must be given"),
    "labels of another length": (
        {"item_labels": np.zeros(6, int), "query_labels": np.zeros(60, int)},
        "item_labels must have one class",
    ),
    "a metric without a cutoff": ({"metrics": "AP"}, "cut by a rank"),
    "an unknown method": ({"methods": ["distiled"]}, "did you mean 'distilled'"),
    "no bytes": ({"n_bytes": ()}, "n_bytes must not be empty"),
    "more than all": ({"keep": 1.5}, "keep must be a share"),
    "an unknown similarity": ({"similarity": "cos"}, "similarity must be one of"),
    "no time": ({"budget": 0}, "budget must be"),
    "judgements without relevant items": (
        {"judgements": [(query, 0, 0) for query in range(60)]},
        "have something relevant",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_before_any_work(vectors, tmp_path, case):
    changed, message = BAD[case]
    arguments = {"items": vectors["items"], "queries": vectors["queries"], **changed}
    with pytest.raises(InputError, match=message) as caught:
        compress(out=tmp_path / "out", **arguments)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def memory_of_a_run(folder, n_rows):
    """The most that a run over a mapped file of so many rows of 1 KB allocates."""
    rows = np.random.default_rng(0).standard_normal((5000, 256)).astype(np.float32)
    shape = (n_rows, 256)
    items = np.lib.format.open_memmap(folder / f"{n_rows}.npy", "w+", np.float32, shape=shape)
    for place in range(n_rows // 5000):
        items[place * 5000 : (place + 1) * 5000] = np.roll(rows, place, axis=1)
    del items
    tracemalloc.start()
    compress(
        folder / f"{n_rows}.npy",
        rows[:40] + 0.1 * rows[40:80],
        out=folder / f"out_{n_rows}",
        n_bytes=4,
        methods=["sign"],
        pools=(50,),
        onnx=False,
        n_threads=1,
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.slow
def test_memory_does_not_grow_as_a_mapped_file_does(tmp_path):
    """Both runs learn from 20,000 rows; 75,000 further rows have 77 MB."""
    memory_of_a_run(tmp_path, 25_000)  # imports what a run imports
    few = memory_of_a_run(tmp_path, 25_000)
    assert memory_of_a_run(tmp_path, 100_000) - few < 30e6
