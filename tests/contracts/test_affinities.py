"""What every kind of affinity must do alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.counting import KINDS, random_codes
from rankbits import count_ties
from rankbits.errors import InputError

EVERYTHING = slice(None)


@pytest.fixture(params=KINDS)
def case(request, rng):
    return KINDS[request.param](rng, 6, 60)


def test_the_shape_is_queries_by_items(case):
    assert case.whole.shape == (6, 60)


def test_levels_are_int64_and_ascend_from_0(case):
    levels = case.whole.levels
    assert levels.dtype == np.int64
    assert levels[0] == 0
    assert (np.diff(levels) > 0).all()


def test_every_level_that_occurs_is_named(case):
    assert set(np.unique(case.matrix)) <= set(case.whole.levels.tolist())


def test_indices_are_contiguous_and_as_narrow_as_the_levels_allow(case):
    found = case.whole.indices(EVERYTHING, EVERYTHING)
    assert found.dtype == (np.uint8 if len(case.whole.levels) <= 256 else np.uint16)
    assert found.flags.c_contiguous


def test_indices_name_the_level_of_each_pair(case):
    affinity = case.whole
    found = affinity.levels[affinity.indices(EVERYTHING, EVERYTHING)]
    assert np.array_equal(found, case.matrix)


@pytest.mark.parametrize("kind", KINDS)
@given(
    st.integers(0, 5), st.integers(0, 6), st.integers(0, 59), st.integers(0, 60), st.integers(0, 9)
)
def test_a_block_of_indices_is_the_block_of_all_of_them(kind, top, bottom, left, right, seed):
    affinity = KINDS[kind](np.random.default_rng(seed), 6, 60).whole
    queries, items = slice(top, max(top, bottom)), slice(left, max(left, right))
    block = affinity.indices(queries, items)
    assert np.array_equal(block, affinity.indices(EVERYTHING, EVERYTHING)[queries, items])


def test_pairs_are_single_cells_of_the_indices_and_minus_one_is_0(case, rng):
    affinity = case.whole
    queries, items = rng.integers(0, 6, 40), rng.integers(-1, 60, 40)
    expected = affinity.indices(EVERYTHING, EVERYTHING)[queries, items]
    assert np.array_equal(affinity.pairs(queries, items), np.where(items < 0, 0, expected))


def test_no_pairs_are_an_empty_answer(case):
    nothing = np.empty(0, np.int64)
    assert case.whole.pairs(nothing, nothing).shape == (0,)


@pytest.mark.parametrize(("n_queries", "n_items"), [(5, 60), (6, 59), (6, 61), (60, 6)])
def test_counting_refuses_codes_out_of_step_with_the_affinity(case, rng, n_queries, n_items):
    queries, database = random_codes(rng, n_queries, 8), random_codes(rng, n_items, 8)
    with pytest.raises(InputError, match="affinity is over 6 queries and 60 items"):
        count_ties(queries, database, case.whole)


def test_repr_names_the_shape(case):
    assert "shape=(6, 60)" in repr(case.whole)
