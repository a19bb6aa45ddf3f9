"""Ranking lists as one matrix: the sum over all triplets, without the triplets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import rsh as oracle
from rankbits import affinity
from rankbits.methods.shallow.rsh.lists import draw_lists, order_weights, ranking_matrix
from rankbits.methods.supervision import supervise


@st.composite
def lists(draw):
    n_queries, n = draw(st.integers(1, 3)), draw(st.integers(2, 7))
    cells = st.lists(st.integers(0, 3), min_size=n_queries * n, max_size=n_queries * n)
    levels = np.array(draw(cells)).reshape(n_queries, n)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    own = rng.integers(0, n, n_queries)
    return levels, rng.standard_normal((n, 3)), rng.standard_normal((n_queries, 3)), own, rng


@given(lists())
def test_the_rank_form_of_b_is_the_triplet_sum(case):
    levels, rows, queries, own, _ = case
    tensor = oracle.triplet_tensor(levels)
    matrix, n_triplets = ranking_matrix(rows, queries, levels)
    expected = oracle.ranking_matrix(rows, queries, tensor)
    np.testing.assert_allclose(matrix, expected, atol=1e-10)
    assert n_triplets == (tensor == 1).sum()
    matrix, n_triplets = ranking_matrix(rows, queries, levels, own)
    alone = oracle.without_own(tensor, own)
    np.testing.assert_allclose(matrix, oracle.ranking_matrix(rows, queries, alone), atol=1e-10)
    assert n_triplets == (alone == 1).sum()


@given(lists())
def test_weighted_triplets_are_summed_alike(case):
    levels, rows, queries, _, rng = case
    lead = rng.uniform(0, 4, levels.shape)
    expected = oracle.weighted(oracle.triplet_tensor(levels), lead)
    matrix, n_triplets = ranking_matrix(rows, queries, levels, None, lead)
    assert n_triplets == pytest.approx(expected[expected > 0].sum())
    np.testing.assert_allclose(matrix, oracle.ranking_matrix(rows, queries, expected), atol=1e-9)


def test_a_list_of_ranks_weighs_each_item_by_its_place():
    ranks = np.random.default_rng(0).permutation(1000)
    weights, n_triplets = order_weights(1000 - ranks)
    assert np.array_equal(weights, 999 - 2.0 * ranks)
    assert n_triplets == 1000 * 999 / 2


def test_a_list_of_one_level_says_nothing():
    weights, n_triplets = order_weights(np.full(5, 3))
    assert not weights.any()
    assert n_triplets == 0


def test_an_item_that_earlier_tables_have_far_away_weighs_more():
    levels = np.array([1, 1, 0, 0])
    far, near = 3.0, 0.0
    weights, _ = order_weights(levels, np.array([far, near, far, near]))
    assert weights[0] > weights[1] > 0
    assert weights[3] < weights[2] < 0
    assert weights[0] == pytest.approx(2 + 1 + np.exp(3))


def test_queries_are_rows_with_an_order_to_keep_each_drawn_once():
    judged = affinity.judgements([(3, 1, 2), (5, 2, 1), (8, 8, 4), (9, 0, 1)], 10, 10)
    supervision = supervise(np.eye(10), judged)
    for n_queries in (2, 10):
        blocks = list(draw_lists(supervision, n_queries, np.random.RandomState(0)))
        queries = np.concatenate([rows for rows, _ in blocks])
        assert len(set(queries)) == len(queries) == min(n_queries, 3)
        assert set(queries) <= {3, 5, 9}  # 8 ranks nothing but itself
        for rows, levels in blocks:
            assert np.array_equal(levels, supervision.levels(rows, np.arange(10)))


def test_lists_come_in_blocks_of_bounded_size(monkeypatch):
    labels = np.arange(50) % 5
    supervision = supervise(np.zeros((50, 1)), labels)
    monkeypatch.setattr("rankbits.methods.shallow.rsh.lists._BLOCK_CELLS", 350)
    blocks = list(draw_lists(supervision, 20, np.random.RandomState(1)))
    assert [len(rows) for rows, _ in blocks] == [7, 7, 6]
    assert len({row for rows, _ in blocks for row in rows}) == 20
