"""Tag affinity against intersections of sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.counting import tag_levels
from rankbits.affinity import tags
from rankbits.errors import InputError

EVERYTHING = slice(None)


@given(st.integers(1, 6), st.integers(1, 9), st.integers(1, 12), st.booleans(), st.integers(0, 99))
def test_levels_are_sizes_of_intersections(n_queries, n_items, n_tags, graded, seed):
    rng = np.random.default_rng(seed)
    query_side, item_side = (
        rng.random((n_queries, n_tags)) < 0.5,
        rng.random((n_items, n_tags)) < 0.5,
    )
    relation = tags(query_side, item_side, graded=graded)
    expected = tag_levels(query_side, item_side, graded)
    assert np.array_equal(relation.levels[relation.indices(EVERYTHING, EVERYTHING)], expected)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, np.float64])
def test_any_number_type_of_0_and_1_is_a_tag_row(rng, dtype):
    query_side, item_side = rng.integers(0, 2, (4, 9)), rng.integers(0, 2, (7, 9))
    relation = tags(query_side.astype(dtype), item_side.astype(dtype), graded=True)
    assert np.array_equal(
        relation.indices(EVERYTHING, EVERYTHING), tag_levels(query_side, item_side, True)
    )
    assert relation.database_rows(slice(2, 5)).dtype == np.uint8
    assert np.array_equal(relation.database_rows(slice(2, 5)), item_side[2:5])


def test_rows_without_tags_share_nothing():
    nothing = np.zeros((2, 3), int)
    for graded in (False, True):
        relation = tags(nothing, np.ones((4, 3), int), graded=graded)
        assert relation.levels.tolist() == [0, 1]
        assert not relation.indices(EVERYTHING, EVERYTHING).any()


def test_graded_levels_end_at_what_two_rows_can_share():
    query_side, item_side = [[1, 1, 1, 0]], [[1, 0, 0, 1], [0, 0, 0, 1]]
    assert tags(query_side, item_side, graded=True).levels.tolist() == [0, 1, 2]
    assert tags(query_side, item_side).levels.tolist() == [0, 1]


def test_more_than_255_shared_tags_are_counted():
    ones = np.ones((1, 400), np.uint8)
    assert tags(ones, ones, graded=True).indices(EVERYTHING, EVERYTHING).tolist() == [[400]]


def test_more_rows_than_a_block_are_checked_to_the_end():
    item_side = np.zeros((1_200, 1_000), np.uint8)
    item_side[1_150, :7] = 1
    assert tags(np.ones((1, 1_000)), item_side, graded=True).levels[-1] == 7
    item_side[1_199, 3] = 2
    with pytest.raises(InputError, match=r"^database_tags must be 0 and 1, got the value 2"):
        tags(np.ones((1, 1_000)), item_side)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([[0, 2]], "the value 2"),
        ([[0, -1]], "the value -1"),
        ([[0.0, 0.5]], "the value 0.5"),
        ([[0.0, np.nan]], "the value nan"),
        ([["a", "b"]], "0 and 1"),
        ([0, 1], "shape"),
        (np.empty((0, 2)), "empty"),
        ([[0, 1], [1]], "one shape"),
    ],
)
def test_what_is_no_multi_hot_matrix_is_refused_and_named(rows, says):
    with pytest.raises(InputError, match=f"^query_tags .*{says}"):
        tags(rows, [[0, 1]])
    with pytest.raises(InputError, match=f"^database_tags .*{says}"):
        tags([[0, 1]], rows)


def test_unequal_numbers_of_tags_are_refused():
    with pytest.raises(InputError, match="query_tags have 2 columns and database_tags have 3"):
        tags([[0, 1]], [[0, 1, 1]])
