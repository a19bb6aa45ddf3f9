"""Levels given as a matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits.affinity import levels
from rankbits.errors import InputError

EVERYTHING = slice(None)


def matrix_of(affinity):
    return affinity.levels[affinity.indices(EVERYTHING, EVERYTHING)]


@given(st.lists(st.tuples(*[st.integers(0, 2**63 - 1) | st.integers(0, 3)] * 3), min_size=1))
def test_a_matrix_comes_back_from_its_levels_and_indices(rows):
    relation = levels(rows)
    assert matrix_of(relation).tolist() == [list(row) for row in rows]
    assert relation.levels.tolist() == sorted({0}.union(*rows))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.uint16, np.int64, np.uint64])
def test_any_integer_type_is_a_matrix_of_levels(rng, dtype):
    matrix = rng.integers(0, 2, (4, 6)).astype(dtype)
    assert np.array_equal(matrix_of(levels(matrix)), matrix)
    if dtype is not bool:
        assert np.array_equal(matrix_of(levels(matrix * dtype(100))), matrix * 100)


def test_huge_neighbouring_levels_stay_apart_in_unsigned_integers():
    matrix = np.array([[2**60, 2**60 + 1, 2**63 - 1, 0]], np.uint64)
    assert matrix_of(levels(matrix)).tolist() == matrix.tolist()


def test_0_is_a_level_even_where_every_pair_is_relevant():
    assert levels([[3, 5]]).levels.tolist() == [0, 3, 5]
    assert levels([[0, 0]]).levels.tolist() == [0]


@pytest.mark.parametrize(("n", "dtype"), [(256, np.uint8), (257, np.uint16), (65_536, np.uint16)])
def test_indices_widen_with_the_number_of_levels(n, dtype):
    matrix = np.arange(n)[::-1].reshape(1, -1)
    relation = levels(matrix).indices(EVERYTHING, EVERYTHING)
    assert relation.dtype == dtype
    assert np.array_equal(relation, matrix)


def test_levels_of_a_matrix_taller_than_a_block_are_all_found():
    matrix = np.zeros((5, 1 << 19), np.uint8)
    matrix[4, -1], matrix[2, 7] = 9, 4
    assert levels(matrix).levels.tolist() == [0, 4, 9]


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        ([[0, -1]], "non-negative integers, got -1"),
        ([[0.0, 1.0]], "integers, got float64"),
        ([["a"]], "non-negative integers"),
        (np.array([[2**63]], np.uint64), "63 bits"),
        ([1, 2], "shape"),
        (np.empty((2, 0), int), "empty"),
        ([[1], [1, 2]], "one shape"),
        (np.arange(65_537).reshape(1, -1), "at most 65536 distinct values"),
    ],
)
def test_what_is_no_matrix_of_levels_is_refused(matrix, says):
    with pytest.raises(InputError, match=f"^levels must .*{says}"):
        levels(matrix)
