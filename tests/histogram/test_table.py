"""The tie histogram as a value, and on disk."""

import io
import re
import zipfile

import numpy as np
import pytest

from oracles.counting import KINDS, random_codes
from rankbits import TieHistogram, count_ties
from rankbits.errors import FileFormatError, InputError


@pytest.fixture
def hist(rng):
    queries, database = random_codes(rng, 2, 4), random_codes(rng, 9, 4)
    return count_ties(queries, database, KINDS["levels"](rng, 2, 9).whole)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ties.npz"


def same(a, b):
    return np.array_equal(a.counts, b.counts) and np.array_equal(a.levels, b.levels)


def test_a_histogram_tells_its_sizes_its_items_and_its_positives():
    hist = TieHistogram([[[1, 2, 0], [3, 0, 4]]], [0, 1, 5])
    assert (hist.n_queries, hist.n_bits) == (1, 1)
    assert hist.items.tolist() == [[3, 7]]
    assert hist.positives.tolist() == [[2, 4]]
    assert (hist.counts.dtype, hist.levels.dtype) == (np.int64, np.int64)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64])
def test_counts_of_any_integer_type_become_int64(dtype):
    hist = TieHistogram(np.ones((1, 2, 2), dtype), np.array([0, 1], dtype))
    assert (hist.counts.dtype, hist.levels.dtype) == (np.int64, np.int64)


@pytest.mark.parametrize(
    ("counts", "levels", "says"),
    [
        (np.zeros((1, 2)), [0], "counts must be integers of shape"),
        (np.zeros((1, 2, 1)), [0], "counts must be integers of shape"),
        (np.zeros((1, 1, 1), int), [0], "counts must be integers of shape"),
        (np.full((1, 2, 1), -1), [0], "counts must not be negative"),
        (
            np.full((1, 2, 1), 2**63, np.uint64),
            [0],
            "counts must be fewer than 2.63 items .* query 0 has 1844",
        ),
        (
            np.full((1, 2, 1), 2**62),
            [0],
            "counts must be fewer than 2.63 items .*, query 0 has 9223372036854775808",
        ),
        (
            np.full((1, 2, 2), 2**62, np.uint64),
            [0, 1],
            "counts must be fewer than 2.63 items for each query",
        ),
        (
            [[[0], [5]], [[2**63 - 1], [1]]],
            [0],
            "counts must be fewer than 2.63 items for each query, query 1",
        ),
        (np.zeros((1, 2, 2), int), [0], "levels must be 2 integers"),
        (np.zeros((1, 2, 2), int), [0.0, 1.0], "levels must be 2 integers"),
        (np.zeros((1, 2, 2), int), [1, 2], "levels must ascend from 0"),
        (np.zeros((1, 2, 2), int), [0, 0], "levels must ascend from 0"),
        (np.zeros((1, 2, 3), int), [0, 2, 1], "levels must ascend from 0"),
        (np.zeros((1, 2, 2), int), np.array([0, 2**63], np.uint64), "levels must ascend from 0"),
        (np.zeros((1, 2, 0), int), np.empty(0, int), "levels must ascend from 0"),
    ],
)
def test_what_is_no_histogram_is_refused(counts, levels, says):
    with pytest.raises(InputError, match=f"^{says}"):
        TieHistogram(counts, levels)


def test_the_most_items_that_an_int64_counts_are_taken_and_no_shard_more():
    most = TieHistogram([[[5], [5]], [[2**63 - 2], [1]]], [0])
    assert most.items.sum(axis=1).tolist() == [10, 2**63 - 1]
    nothing = TieHistogram(np.zeros((2, 2, 2), int), [0, 1])
    assert (most + nothing).items.sum(axis=1).tolist() == [10, 2**63 - 1]
    one = TieHistogram([[[1, 0], [0, 0]], [[0, 1], [0, 0]]], [0, 1])
    says = "fewer than 2^63 items together, query 1 has 9223372036854775807 and 1"
    for shards in ((most, one), (one, most)):
        with pytest.raises(InputError, match="shards must have fewer than"):
            shards[0] + shards[1]
    with pytest.raises(InputError, match=re.escape(says)):
        most + one


def test_a_saved_histogram_comes_back_and_numpy_reads_it(hist, path):
    hist.save(path)
    assert same(TieHistogram.load(str(path)), hist)
    with np.load(path) as stored:
        assert np.array_equal(stored["counts"], hist.counts)


def test_a_file_cut_at_any_byte_is_refused(hist, path):
    hist.save(path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError):
            TieHistogram.load(path)


def test_a_flipped_bit_in_any_byte_is_refused_or_changes_nothing(hist, path, rng):
    hist.save(path)
    whole = path.read_bytes()
    n_refused = 0
    for place, bit in enumerate(rng.integers(0, 8, len(whole))):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            assert same(TieHistogram.load(path), hist)
        except FileFormatError:
            n_refused += 1
    assert n_refused > len(whole) / 2


def archive(**arrays):
    """An .npz of the given arrays, as bytes."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def plain(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def text_archive():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as members:
        for name in ("rankbits_histogram", "counts", "levels"):
            members.writestr(name, "text")
    return file.getvalue()


COUNTS = np.zeros((1, 2, 2), int)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text\n",
        b"PK\x03\x04",
        plain(COUNTS),
        text_archive(),
        archive(counts=COUNTS, levels=[0, 1]),
        archive(rankbits_histogram=1, counts=COUNTS),
        archive(rankbits_histogram=1, counts=COUNTS, levels=[0, 1, 2]),
        archive(rankbits_histogram=1, counts=COUNTS - 1, levels=[0, 1]),
        archive(rankbits_histogram=1, counts=COUNTS * 1.0, levels=[0, 1]),
        archive(rankbits_histogram=2, counts=COUNTS, levels=[0, 1]),
        archive(rankbits_histogram=[1, 1], counts=COUNTS, levels=[0, 1]),
        archive(rankbits_histogram="one", counts=COUNTS, levels=[0, 1]),
    ],
)
def test_a_foreign_file_is_refused_by_name(path, content):
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"ties\.npz"):
        TieHistogram.load(path)


def test_a_missing_file_is_named(path):
    with pytest.raises(InputError, match="there is no"):
        TieHistogram.load(path)


def test_a_histogram_saved_over_another_replaces_it(hist, path):
    (hist + hist).save(path)
    hist.save(path)
    assert same(TieHistogram.load(path), hist)
    assert [file.name for file in path.parent.iterdir()] == ["ties.npz"]
