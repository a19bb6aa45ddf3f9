"""Answers of parts become one answer, ordered by query, then (distance, id)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.search import (
    nearest,
    nearest_with_ties,
    pairs_of_ragged,
    pairs_of_table,
)
from rankbits.index.results import Ragged, combined, gathered, nothing, table, unique

# Three queries, each with items {id: distance}; of few distances, so that many tie. Sets of any
# size are mostly small when drawn, so one query has no fewer than twelve items.
FEW, MANY = (
    st.dictionaries(st.integers(0, 40), st.integers(0, 2), min_size=least, max_size=25)
    for least in (0, 12)
)
ITEMS = st.tuples(FEW, MANY, FEW)


def ragged(rows):
    """A Ragged of lists of (distance, id)."""
    counts = [len(row) for row in rows]
    pairs = [pair for row in rows for pair in row]
    return Ragged(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([distance for distance, _ in pairs], np.int32),
        np.array([item for _, item in pairs], np.int64),
    )


def shared_out(items, n_parts):
    """The items of each query over parts by their id, and all of them, ranked."""
    ranked = [sorted((d, item) for item, d in row.items()) for row in items]
    parts = [
        [[pair for pair in row if pair[1] % n_parts == part] for row in ranked]
        for part in range(n_parts)
    ]
    return parts, ranked


@given(ITEMS, st.integers(1, 4), st.one_of(st.integers(1, 12), st.integers(13, 50)))
def test_the_k_nearest_of_parts_are_the_k_nearest_of_all(items, n_parts, k):
    parts, ranked = shared_out(items, n_parts)
    found = combined([ragged(nearest(part, k)) for part in parts], 3, k)
    assert pairs_of_ragged(found) == nearest(ranked, k)


@given(ITEMS, st.integers(1, 4), st.one_of(st.integers(1, 12), st.integers(13, 50)))
def test_complete_ties_of_parts_are_complete_ties_of_all(items, n_parts, k):
    parts, ranked = shared_out(items, n_parts)
    answers = [ragged(nearest_with_ties(part, k)) for part in parts]
    found = combined(answers, 3, k, is_complete=True)
    assert pairs_of_ragged(found) == nearest_with_ties(ranked, k)


def test_ties_of_the_last_place_are_kept_from_every_part():
    parts = [ragged([[(0, 4), (1, 2)]]), ragged([[(1, 1), (1, 7)]]), ragged([[(1, 9)]])]
    assert combined(parts, 1, 2).ids.tolist() == [4, 1]
    assert combined(parts, 1, 2, is_complete=True).ids.tolist() == [4, 1, 2, 7, 9]


@given(ITEMS, st.integers(1, 4))
def test_without_k_all_of_all_parts_is_kept(items, n_parts):
    parts, ranked = shared_out(items, n_parts)
    assert pairs_of_ragged(combined([ragged(part) for part in parts], 3, None)) == ranked


@pytest.mark.parametrize("is_complete", [False, True])
def test_no_parts_are_no_items_for_each_query(is_complete):
    found = combined([], 4, 2, is_complete=is_complete)
    assert pairs_of_ragged(found) == [[], [], [], []]
    assert pairs_of_ragged(nothing(4)) == [[], [], [], []]


@pytest.mark.parametrize("is_complete", [False, True])
def test_parts_that_found_nothing_are_no_items(is_complete):
    found = combined([nothing(2), nothing(2), nothing(2)], 2, 3, is_complete=is_complete)
    assert pairs_of_ragged(found) == [[], []]


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=30), max_size=4))
def test_an_item_found_several_times_is_kept_once_at_its_smallest_distance(rows):
    rows = [sorted(row) for row in rows]
    smallest = [{} for _ in rows]
    for best, row in zip(smallest, rows, strict=True):
        for distance, item in row:
            best[item] = min(distance, best.get(item, distance))
    expected = [sorted((d, item) for item, d in best.items()) for best in smallest]
    assert pairs_of_ragged(unique(ragged(rows))) == expected


@given(ITEMS, st.integers(1, 30))
def test_a_table_has_k_places_a_query_and_says_which_are_empty(items, k):
    _, ranked = shared_out(items, 1)
    distances, ids = table(ragged(nearest(ranked, k)), k)
    assert distances.shape == ids.shape == (3, k)
    assert pairs_of_table((distances, ids)) == nearest(ranked, k)


def test_empty_places_hold_the_largest_int32_and_minus_one():
    distances, ids = table(ragged([[(2, 7)], []]), 2)
    assert distances.tolist() == [[2, 2147483647], [2147483647, 2147483647]]
    assert ids.tolist() == [[7, -1], [-1, -1]]


def test_counts_and_queries_say_whose_each_item_is():
    found = ragged([[(0, 4), (1, 2)], [], [(3, 3)]])
    assert found.counts.tolist() == [2, 0, 1]
    assert found.queries().tolist() == [0, 0, 2]


def test_answers_to_some_of_the_queries_are_gathered_and_the_last_one_counts():
    first = Ragged(np.array([0, 0, 2]), np.array([1, 2]), np.array([10, 11]))
    second = Ragged(np.array([0, 1]), np.array([5]), np.array([12]))
    whole = gathered([(np.array([1, 0]), first), (np.array([1]), second)], 2)
    assert whole.offsets.tolist() == [0, 2, 3]
    assert whole.ids.tolist() == [10, 11, 12]
    assert whole.distances.tolist() == [1, 2, 5]
