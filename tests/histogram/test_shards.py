"""Histograms of parts make the histogram of the whole; orders do not matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.counting import KINDS, counts_by_pairs, random_codes
from rankbits import BinaryCodes, TieHistogram, affinity, count_ties
from rankbits.errors import InputError


def same(a, b):
    return np.array_equal(a.counts, b.counts) and np.array_equal(a.levels, b.levels)


def example(kind, seed, n_queries=4, n_items=40, n_bits=9):
    rng = np.random.default_rng(seed)
    queries, database = random_codes(rng, n_queries, n_bits), random_codes(rng, n_items, n_bits)
    return queries, database, KINDS[kind](rng, n_queries, n_items)


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.integers(0, 4), min_size=40, max_size=40), st.integers(0, 20))
def test_the_shards_of_any_partition_add_up_to_the_whole(kind, shard_of, seed):
    queries, database, case = example(kind, seed)
    whole = count_ties(queries, database, case.whole)
    parts = [np.flatnonzero(np.array(shard_of) == shard) for shard in set(shard_of)]
    counted = [count_ties(queries, database[part], case.over(part)) for part in parts]
    merged = counted[0]
    for shard in counted[1:]:
        merged = merged + shard
    assert same(merged, whole)


@pytest.mark.parametrize("kind", KINDS)
@given(st.permutations(range(40)), st.permutations(range(9)), st.integers(0, 20))
def test_the_order_of_items_and_of_bits_changes_nothing(kind, items, bits, seed):
    queries, database, case = example(kind, seed)
    whole = count_ties(queries, database, case.whole)
    items, bits = np.array(items), np.array(bits)
    moved = [BinaryCodes.from_bits(codes.bits()[:, bits]) for codes in (queries, database[items])]
    assert same(count_ties(*moved, case.over(items)), whole)


def test_addition_is_commutative_and_associative_over_unequal_levels():
    a, b, c = (
        TieHistogram(np.full((1, 2, len(levels)), n), levels)
        for n, levels in ((1, [0]), (2, [0, 3]), (3, [0, 1, 9]))
    )
    total = (a + b) + c
    assert same(total, c + (b + a))
    assert total.levels.tolist() == [0, 1, 3, 9]
    assert total.counts[0, 0].tolist() == [6, 3, 2, 3]


def test_queries_or_bits_out_of_step_do_not_add(rng):
    hist = TieHistogram(np.zeros((2, 9, 2), int), [0, 1])
    for shape in ((3, 9, 2), (2, 8, 2)):
        with pytest.raises(InputError, match=r"shards must share \(queries, b \+ 1\)"):
            hist + TieHistogram(np.zeros(shape, int), [0, 1])
    with pytest.raises(TypeError):
        hist + 1


@pytest.mark.parametrize("kind", ["classes", "names", "tags", "neighbours"])
def test_query_sets_stack(kind):
    queries, database, case = example(kind, 3)
    whole = count_ties(queries, database, case.whole)
    halves = [TieHistogram(whole.counts[rows], whole.levels) for rows in (slice(0, 1), slice(1, 4))]
    assert same(TieHistogram.stack(halves), whole)


def test_stacked_parts_keep_every_level():
    parts = [TieHistogram(np.full((1, 2, 2), n), [0, n]) for n in (1, 5)]
    stacked = TieHistogram.stack(parts)
    assert stacked.levels.tolist() == [0, 1, 5]
    assert stacked.counts[:, 0].tolist() == [[1, 1, 0], [5, 0, 5]]


def test_parts_of_unequal_code_length_and_no_parts_do_not_stack():
    with pytest.raises(InputError, match="parts must be histograms of one code length"):
        TieHistogram.stack([])
    with pytest.raises(InputError, match="parts must be histograms of one code length"):
        TieHistogram.stack([TieHistogram(np.zeros((1, n, 1), int), [0]) for n in (2, 3)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("yes", [True, np.True_])
def test_a_query_does_not_see_itself_if_told(kind, yes):
    _, codes, case = example(kind, 5, n_queries=30, n_items=30)
    found = count_ties(codes, codes, case.whole, exclude_self=yes)
    expected = counts_by_pairs(codes, codes, case.matrix, found.levels, own=np.arange(30))
    assert np.array_equal(found.counts, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_an_array_names_what_each_query_does_not_see(kind, dtype):
    queries, database, case = example(kind, 6)
    own = np.array([39, -1, 0, 7], dtype)
    found = count_ties(queries, database, case.whole, exclude_self=own)
    expected = counts_by_pairs(queries, database, case.matrix, found.levels, own=own)
    assert np.array_equal(found.counts, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_shards_that_each_leave_out_what_they_hold_add_up(kind):
    _, codes, case = example(kind, 7, n_queries=30, n_items=30)
    whole = count_ties(codes, codes, case.whole, exclude_self=True)
    left = count_ties(
        codes, codes[:11], case.over(np.arange(11)), np.where(np.arange(30) < 11, np.arange(30), -1)
    )
    own = np.where(np.arange(30) >= 11, np.arange(30) - 11, -1)
    right = count_ties(codes, codes[11:], case.over(np.arange(11, 30)), exclude_self=own)
    assert same(left + right, whole)


def test_nothing_left_out_by_minus_ones_and_by_false(rng):
    queries, database, case = example("levels", 8)
    whole = count_ties(queries, database, case.whole)
    for nobody in (False, np.False_, np.full(4, -1), [-1, -1, -1, -1]):
        assert same(count_ties(queries, database, case.whole, exclude_self=nobody), whole)


@pytest.mark.parametrize(
    ("own", "says"),
    [
        (True, "needs the queries to be the database, got 4 queries and 40 items"),
        (np.array([0, 1, 2]), "must be a bool or 4 integers"),
        (np.array([0.0, 1.0, 2.0, 3.0]), "must be a bool or 4 integers"),
        (np.array([True] * 4), "must be a bool or 4 integers"),
        (np.array([0, 1, 2, 40]), "from -1 to 39"),
        (np.array([0, 1, 2, -2]), "from -1 to 39"),
        (None, "must be a bool or 4 integers"),
        ([[0], [1, 2]], "one shape"),
    ],
)
def test_what_names_no_own_items_is_refused(own, says):
    queries, database, case = example("classes", 9)
    with pytest.raises(InputError, match=f"^exclude_self.*{says}"):
        count_ties(queries, database, case.whole, exclude_self=own)


def test_each_of_many_queries_leaves_out_one_item(rng):
    codes = random_codes(rng, 3_000, 16)
    labels = rng.integers(0, 10, 3_000)
    found = count_ties(codes, codes, affinity.classes(labels, labels), exclude_self=True)
    assert found.items.sum(axis=1).tolist() == [2_999] * 3_000
