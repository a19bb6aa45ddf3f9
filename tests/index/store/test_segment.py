"""Segments hold codes by row and by id; masks are words of 64 items."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.search import BIT_LENGTHS, SIZES, codes_like
from rankbits.index.store.segment import GROUP, Segment, aligned, as_range
from rankbits.index.store.words import all_words, mask_of, words_of


@pytest.mark.parametrize("n", [*SIZES, 127, 128, 129])
@pytest.mark.parametrize("n_bits", BIT_LENGTHS)
def test_codes_come_back_as_they_went_in(rng, n, n_bits):
    codes = codes_like("uniform", rng, n, n_bits)
    segment = Segment.of(codes, range(n))
    assert len(segment) == n
    assert segment.codes() == codes
    rows = rng.integers(0, n, 9) if n else np.empty(0, np.int64)
    assert segment.codes(rows) == codes[rows]


def test_planes_hold_byte_k_of_64_items_side_by_side_and_zero_behind_the_last(rng):
    codes = codes_like("uniform", rng, 70, 24)
    planes = Segment.of(codes, range(70)).planes
    assert planes.shape == (2, 3, GROUP)
    assert planes.ctypes.data % 64 == 0
    for row, code in enumerate(codes.packed):
        assert planes[row // 64, :, row % 64].tolist() == code.tolist()
    assert not planes[1, :, 6:].any()


@given(st.lists(st.integers(0, 2**63 - 2), unique=True, max_size=80), st.integers(0, 99))
def test_codes_stand_in_order_of_id_whatever_order_they_came_in(ids, seed):
    rng = np.random.default_rng(seed)
    codes = codes_like("uniform", rng, len(ids), 16)
    segment = Segment.of(codes, np.array(ids, np.int64))
    order = sorted(range(len(ids)), key=ids.__getitem__)
    assert segment.id_array().tolist() == sorted(ids)
    assert segment.codes().packed.tolist() == codes.packed[order].tolist()


@given(st.sets(st.integers(0, 60), max_size=40), st.lists(st.integers(0, 70), max_size=30))
def test_rows_and_ids_find_each_other_and_foreign_ids_have_no_row(there, asked):
    segment = Segment.of(
        codes_like("few", np.random.default_rng(0), len(there), 8),
        np.array(sorted(there), np.int64),
    )
    place = {item: row for row, item in enumerate(sorted(there))}
    rows = segment.rows_of(np.array(asked, np.int64))
    assert rows.tolist() == [place.get(item, -1) for item in asked]
    assert segment.ids_of(rows[rows >= 0]).tolist() == [item for item in asked if item in place]


def test_ids_that_follow_one_another_take_no_memory(rng):
    codes = codes_like("uniform", rng, 100, 32)
    gapless = Segment.of(codes, np.arange(7, 107)[::-1])
    assert gapless.ids == range(7, 107)
    assert gapless.n_bytes == 2 * 4 * GROUP
    assert Segment.of(codes, 2 * np.arange(100)).n_bytes == gapless.n_bytes + 800


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([], range(0)),
        ([4], range(4, 5)),
        ([4, 5, 6], range(4, 7)),
        ([2**63 - 2], range(2**63 - 2, 2**63 - 1)),
    ],
)
def test_a_run_of_ids_is_a_range(ids, expected):
    assert as_range(np.array(ids, np.int64)) == expected


def test_ids_with_a_gap_are_kept_as_they_are():
    assert as_range(np.array([4, 6])).tolist() == [4, 6]


@given(st.lists(st.booleans(), max_size=200))
def test_words_have_a_bit_an_item_the_first_lowest(mask):
    words = words_of(mask)
    assert words.dtype == np.uint64
    assert len(words) == -(-len(mask) // 64)
    number = sum(int(word) << 64 * g for g, word in enumerate(words))
    assert number == sum(1 << i for i, is_set in enumerate(mask) if is_set)
    assert mask_of(words, len(mask)).tolist() == mask


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 127, 128, 129])
def test_all_words_have_no_bit_behind_the_last_item(n):
    assert all_words(n).tolist() == words_of([True] * n).tolist()


@pytest.mark.parametrize("shape", [(0, 3, 64), (1, 1, 64), (5, 7, 64)])
def test_aligned_memory_begins_at_a_cache_line(shape):
    found = aligned(shape)
    assert found.shape == shape
    assert found.flags.c_contiguous
    assert found.size == 0 or found.ctypes.data % 64 == 0
