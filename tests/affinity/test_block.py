"""Levels of chosen rows against chosen items, as a minibatch asks for them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.counting import KINDS
from rankbits.affinity import Affinity, levels

EVERYTHING = slice(None)


class Parity(Affinity):
    """A kind of the user's own: 1 where query and item are both even or both odd."""

    levels = np.array([0, 1])
    shape = (6, 60)

    def indices(self, queries, items):
        rows, columns = np.arange(6)[queries], np.arange(60)[items]
        return ((rows[:, None] + columns[None]) % 2 == 0).astype(np.uint8)


@pytest.mark.parametrize("kind", KINDS)
@given(
    st.lists(st.integers(0, 5), max_size=8),
    st.lists(st.integers(0, 59), max_size=70),
    st.integers(0, 9),
)
def test_a_block_of_rows_in_any_order_is_picked_from_the_indices(kind, queries, items, seed):
    affinity = KINDS[kind](np.random.default_rng(seed), 6, 60).whole
    rows, columns = np.array(queries, np.int64), np.array(items, np.int64)
    block = affinity.block(rows, columns)
    expected = affinity.indices(EVERYTHING, EVERYTHING)[np.ix_(rows, columns)]
    assert block.dtype == expected.dtype
    assert block.shape == (len(rows), len(columns))
    assert np.array_equal(block, expected)


def test_a_kind_that_only_knows_slices_still_answers_for_rows():
    block = Parity().block(np.array([3, 0, 3]), np.array([59, 2, 2, 1]))
    assert block.tolist() == [[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1]]


def test_more_than_256_levels_need_a_wider_block():
    affinity = levels(np.arange(600).reshape(2, 300) * 7)
    block = affinity.block(np.array([1]), np.array([299, 0]))
    assert block.dtype == np.uint16
    assert affinity.levels[block].tolist() == [[599 * 7, 300 * 7]]
