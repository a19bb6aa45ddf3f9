"""Counts of every kind of affinity, under every instruction set, against a loop over pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.counting import (
    BIT_LENGTHS,
    KINDS,
    counts_by_pairs,
    counts_by_query,
    random_codes,
)
from rankbits import BinaryCodes, affinity, count_ties
from rankbits.errors import InputError

SIZES = (1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257)
KERNELS = ("classes", "graded tags", "many levels", "levels")  # one kind for each native loop


def check_by_pairs(rng, kind, n_queries, n_items, n_bits, n_threads=1, n_distinct=None):
    queries = random_codes(rng, n_queries, n_bits)
    database = random_codes(rng, n_items, n_bits, n_distinct)
    case = KINDS[kind](rng, n_queries, n_items)
    found = count_ties(queries, database, case.whole, n_threads=n_threads)
    expected = counts_by_pairs(queries, database, case.matrix, found.levels)
    assert found.counts.dtype == np.int64
    assert np.array_equal(found.counts, expected)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_counted_pair_by_pair_on_any_number_of_threads(
    dispatch, rng, kind, n_threads
):
    for n_queries in (1, 2, 5, 8):
        check_by_pairs(rng, kind, n_queries, 70, 24, n_threads)


@pytest.mark.parametrize("n_bits", BIT_LENGTHS)
@pytest.mark.parametrize("kind", KERNELS)
def test_every_code_length_is_counted(dispatch, rng, kind, n_bits):
    check_by_pairs(rng, kind, 3, 67, n_bits)


@pytest.mark.parametrize("n_items", SIZES)
@pytest.mark.parametrize("kind", KERNELS)
def test_databases_about_the_borders_of_vectors_are_counted(dispatch, rng, kind, n_items):
    for n_bits in (8, 16, 64, 128, 136):
        check_by_pairs(rng, kind, 3, n_items, n_bits)


@pytest.mark.parametrize("kind", KINDS)
@given(
    st.integers(1, 9), st.integers(1, 90), st.integers(1, 140), st.integers(1, 3), st.integers(0, 9)
)
def test_any_small_case_is_counted(dispatch, kind, n_queries, n_items, n_bits, n_threads, seed):
    rng = np.random.default_rng(seed)
    check_by_pairs(rng, kind, n_queries, n_items, n_bits, n_threads, n_distinct=1 + seed)


@pytest.mark.parametrize(
    ("n_items", "n_bits"), [(16_384, 64), (65_536, 8), (8_192, 128), (2_048, 512)]
)
@pytest.mark.parametrize("kind", ["classes", "tags", "levels"])
def test_databases_about_the_border_of_a_native_block_are_counted(
    dispatch, rng, kind, n_items, n_bits
):
    for size in (n_items - 1, n_items, n_items + 1, 2 * n_items + 77):
        queries, database = random_codes(rng, 3, n_bits), random_codes(rng, size, n_bits)
        whole = wide_affinity(kind, rng, 3, size)
        found = count_ties(queries, database, whole, n_threads=2)
        rows = whole.indices(slice(None), slice(None))
        expected = counts_by_query(queries, database, rows, len(whole.levels))
        assert np.array_equal(found.counts, expected)


def wide_affinity(kind, rng, n_queries, n_items):
    """An affinity over many items, which the slow definitions would take too long to check."""
    if kind == "classes":
        return affinity.classes(rng.integers(0, 4, n_queries), rng.integers(0, 5, n_items))
    if kind == "tags":
        mine, theirs = rng.random((n_queries, 20)) < 0.3, rng.random((n_items, 20)) < 0.3
        return affinity.tags(mine, theirs, graded=True)
    return affinity.levels(rng.integers(0, 5, (n_queries, n_items)))


@pytest.mark.parametrize("kind", ["classes", "tags", "levels", "judgements"])
def test_a_database_of_more_than_one_chunk_is_counted(dispatch, rng, kind):
    n_items = (1 << 18) + 1_000
    queries, database = random_codes(rng, 3, 32), random_codes(rng, n_items, 32)
    if kind == "judgements":
        items = rng.choice(n_items, 500, replace=False)
        rows = np.column_stack([rng.integers(0, 3, 500), items, rng.integers(0, 4, 500)])
        whole = affinity.judgements(rows, 3, n_items)
    else:
        whole = wide_affinity(kind, rng, 3, n_items)
    found = count_ties(queries, database, whole)
    columns = whole.indices(slice(None), slice(None))
    assert np.array_equal(
        found.counts, counts_by_query(queries, database, columns, len(whole.levels))
    )


@pytest.mark.parametrize("n_classes", [1, 2, 17, 300])
def test_few_and_many_classes_are_counted_for_odd_and_even_numbers_of_queries(
    dispatch, rng, n_classes
):
    for n_queries in (1, 2, 7, 30, 31):
        queries, database = random_codes(rng, n_queries, 16), random_codes(rng, 500, 16)
        mine, theirs = rng.integers(0, n_classes, n_queries), rng.integers(0, n_classes, 500)
        found = count_ties(queries, database, affinity.classes(mine, theirs), n_threads=3)
        columns = (mine[:, None] == theirs).astype(int)
        assert np.array_equal(found.counts, counts_by_query(queries, database, columns, 2))


def test_queries_of_a_class_that_no_item_has_find_nothing_relevant(dispatch, rng):
    queries, database = random_codes(rng, 5, 40), random_codes(rng, 300, 40)
    found = count_ties(queries, database, affinity.classes([9, 1, 9, 8, 1], [1] * 300))
    assert found.positives.sum(axis=1).tolist() == [0, 300, 0, 0, 300]
    assert found.items.sum(axis=1).tolist() == [300] * 5


@pytest.mark.parametrize("n_items", [1, 64, 70_000])
@pytest.mark.parametrize("n_bits", [1, 64, 200])
def test_a_database_on_one_code_is_one_tie(dispatch, n_bits, n_items):
    ones = BinaryCodes.from_bits(np.ones((1, n_bits), int))
    zeros = BinaryCodes(np.zeros((n_items, ones.packed.shape[1]), np.uint8), n_bits)
    found = count_ties(ones, zeros, affinity.classes([1], np.arange(n_items) % 2))
    expected = np.zeros((1, n_bits + 1, 2), np.int64)
    expected[0, n_bits] = [(n_items + 1) // 2, n_items // 2]
    assert np.array_equal(found.counts, expected)


def test_the_twin_of_one_query_at_a_time_equals_the_twin_of_pairs(rng):
    queries, database = random_codes(rng, 4, 21), random_codes(rng, 50, 21)
    case = KINDS["levels"](rng, 4, 50)
    levels = case.whole.levels
    columns = case.whole.indices(slice(None), slice(None))
    assert np.array_equal(
        counts_by_query(queries, database, columns, len(levels)),
        counts_by_pairs(queries, database, case.matrix, levels),
    )


def test_progress_counts_the_pairs_up_to_the_last(rng):
    seen = []
    queries, database = random_codes(rng, 3, 8), random_codes(rng, (1 << 18) + 5, 8)
    whole = wide_affinity("classes", rng, 3, len(database))
    count_ties(queries, database, whole, progress=lambda done, total: seen.append((done, total)))
    total = 3 * len(database)
    assert seen == [(3 << 18, total), (total, total)]


def test_codes_and_affinities_that_do_not_go_together_are_refused(rng):
    queries, database = random_codes(rng, 2, 8), random_codes(rng, 3, 8)
    same = affinity.classes([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="queries have 8 bits and database has 9"):
        count_ties(queries, random_codes(rng, 3, 9), same)
    with pytest.raises(InputError, match="queries must not be empty"):
        count_ties(queries[:0], database, same)
    with pytest.raises(InputError, match="database must not be empty"):
        count_ties(queries, database[:0], same)
    with pytest.raises(InputError, match="database must be BinaryCodes"):
        count_ties(queries, database.packed, same)
    with pytest.raises(InputError, match=r"affinity must come from rankbits\.affinity"):
        count_ties(queries, database, np.ones((2, 3)))


@pytest.mark.parametrize("n_bits", [5, 16, 24, 32, 64, 67, 68, 128, 253])
@pytest.mark.parametrize("n_items", [1_023, 1_024, 1_500, 30_000])
def test_shared_tags_are_counted_for_queries_with_tags_of_their_own(dispatch, rng, n_bits, n_items):
    queries, database = random_codes(rng, 3, n_bits), random_codes(rng, n_items, n_bits)
    mine, theirs = rng.random((3, 11)) < 0.2, rng.random((n_items, 11)) < 0.1
    mine[0] = False  # no tags at all: nothing is relevant
    shared = mine.astype(np.int64) @ theirs.T.astype(np.int64)
    for graded in (False, True):
        known = affinity.tags(mine, theirs, graded=graded)
        columns = np.minimum(shared, len(known.levels) - 1)
        expected = counts_by_query(queries, database, columns, len(known.levels))
        assert np.array_equal(count_ties(queries, database, known, n_threads=1).counts, expected)


@pytest.mark.parametrize("n_bits", [7, 24, 32, 33, 64])
@pytest.mark.parametrize("n_queries", [1, 2, 3, 4, 5, 7])
def test_queries_of_few_and_of_many_classes_are_counted_in_long_blocks(
    dispatch, rng, n_bits, n_queries
):
    n_items = 40_000
    queries, database = random_codes(rng, n_queries, n_bits), random_codes(rng, n_items, n_bits)
    for n_classes in (1, 2, 50):
        mine, theirs = rng.integers(0, n_classes, n_queries), rng.integers(0, n_classes, n_items)
        columns = (mine[:, None] == theirs).astype(np.int64)
        found = count_ties(queries, database, affinity.classes(mine, theirs), n_threads=1)
        assert np.array_equal(found.counts, counts_by_query(queries, database, columns, 2))
