"""Sparse judgements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.counting import judged_levels
from rankbits.affinity import judgements
from rankbits.errors import InputError

EVERYTHING = slice(None)


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 4), st.integers(0, 6)), st.integers(0, 3) | st.just(2**40)
    ).flatmap(lambda judged: st.permutations(list(judged.items())))
)
def test_judged_pairs_have_their_level_in_any_order_of_rows_and_all_others_0(judged):
    rows = np.array([(*pair, level) for pair, level in judged], np.int64).reshape(-1, 3)
    relation = judgements(rows, 5, 7)
    matrix = relation.levels[relation.indices(EVERYTHING, EVERYTHING)]
    assert np.array_equal(matrix, judged_levels(rows, 5, 7))


def test_no_judgements_leave_everything_irrelevant():
    relation = judgements(np.empty((0, 3), int), 2, 3)
    assert relation.levels.tolist() == [0]
    assert relation.indices(EVERYTHING, EVERYTHING).tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_any_integer_type_makes_a_judgement(dtype):
    relation = judgements(np.array([[1, 2, 5]], dtype), 2, 3)
    assert relation.levels.tolist() == [0, 5]
    assert relation.indices(EVERYTHING, EVERYTHING).tolist() == [[0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([(0, 1, 1), (1, 1, 1), (0, 1, 2)], "query 0 and item 1 come twice"),
        ([(2, 0, 1)], "a query from 0 to 1, got 2"),
        ([(-1, 0, 1)], "a query from 0 to 1, got -1"),
        ([(0, 3, 1)], "an item from 0 to 2, got 3"),
        ([(0, -1, 1)], "an item from 0 to 2, got -1"),
        ([(0, 1, 1.0)], r"integers of shape \(n, 3\)"),
        ([(0, 1)], r"integers of shape \(n, 3\)"),
        ([], r"integers of shape \(n, 3\)"),
        ([(0, 1, 1), (0, 1)], "one shape"),
    ],
)
def test_rows_that_judge_no_pair_or_one_twice_are_refused(rows, says):
    with pytest.raises(InputError, match=f"^rows must .*{says}"):
        judgements(rows, 2, 3)


def test_a_negative_level_is_refused():
    with pytest.raises(InputError, match="levels of rows must be non-negative integers, got -1"):
        judgements([(0, 0, -1)], 2, 3)


@pytest.mark.parametrize("size", [0, -1, 1.0, None])
def test_numbers_of_queries_and_items_must_be_positive_integers(size):
    with pytest.raises(InputError, match=r"^n_queries"):
        judgements(np.empty((0, 3), int), size, 3)
    with pytest.raises(InputError, match=r"^n_database"):
        judgements(np.empty((0, 3), int), 3, size)
