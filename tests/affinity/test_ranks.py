"""Levels from each query's own ranking of the items."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits import BinaryCodes, count_ties, evaluate
from rankbits.affinity import _ranks, nearest_ranks
from rankbits.errors import InputError

EVERYTHING = slice(None)
RANKS, LEVELS = (2, 5, 11), (7, 3, 1)


def matrix_of(affinity):
    return affinity.levels[affinity.indices(EVERYTHING, EVERYTHING)]


def distance(metric, a, b):
    if metric == "l2":
        return float(((a - b) ** 2).sum())
    lengths = np.linalg.norm(a) * np.linalg.norm(b) if metric == "cosine" else 1.0
    return -float(a @ b) / (lengths or 1.0)


def rank_levels(query_x, database_x, ranks, levels, metric, exclude_self=False):
    """One pair after the other: how many items are nearer by more than a rounding?"""
    table = np.zeros((len(query_x), len(database_x)), int)
    for q, query in enumerate(query_x.astype(float)):
        others = [i for i in range(len(database_x)) if not (exclude_self and i == q)]
        distances = {i: distance(metric, query, database_x[i].astype(float)) for i in others}
        for i in others:
            n_nearer = sum(distances[j] < distances[i] - 1e-9 for j in others)
            within = [level for rank, level in zip(ranks, levels, strict=True) if n_nearer < rank]
            table[q, i] = max(within, default=0)
    return table


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
@given(st.integers(1, 5), st.integers(1, 20), st.integers(1, 6), st.integers(0, 99))
def test_a_pair_has_the_level_of_the_smallest_rank_it_is_within(metric, n, n_items, d, seed):
    rng = np.random.default_rng(seed)
    query_x, database_x = rng.normal(size=(n, d)), rng.normal(size=(n_items, d))
    relation = nearest_ranks(query_x, database_x, RANKS, LEVELS, metric)
    assert relation.shape == (n, n_items)
    expected = rank_levels(query_x, database_x, RANKS, LEVELS, metric)
    assert np.array_equal(matrix_of(relation), expected)


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
@pytest.mark.parametrize("cells", [1, 100, 1 << 20])
def test_items_at_equal_distance_have_equal_levels_however_the_work_is_cut(
    rng, monkeypatch, metric, cells
):
    monkeypatch.setattr(_ranks, "_BLOCK_CELLS", cells)
    monkeypatch.setattr(_ranks, "_QUERIES", 7)
    query_x = rng.integers(0, 3, (12, 4)) * 0.1
    database_x = rng.integers(0, 3, (50, 4)) * 0.1
    relation = nearest_ranks(query_x, database_x, RANKS, LEVELS, metric)
    whole = relation.indices(EVERYTHING, EVERYTHING)
    expected = rank_levels(query_x, database_x, RANKS, LEVELS, metric)
    assert np.array_equal(relation.levels[whole], expected)
    assert (np.count_nonzero(whole == 3, axis=1) > 2).any()  # more than the rank says: ties
    for queries, items in ((slice(0, 1), slice(3, 50)), (slice(3, 11), slice(9, 10))):
        assert np.array_equal(relation.indices(queries, items), whole[queries, items])
    rows, columns = rng.integers(0, 12, 9), rng.integers(0, 50, 30)
    assert np.array_equal(relation.block(rows, columns), whole[np.ix_(rows, columns)])
    assert np.array_equal(relation.pairs(rows, columns[:9]), whole[rows, columns[:9]])


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
def test_a_row_has_no_place_in_its_own_ranking(rng, metric):
    x = rng.normal(size=(30, 5))
    x[7] = x[3]  # a duplicate is another item
    relation = nearest_ranks(x, x, RANKS, LEVELS, metric, exclude_self=True)
    levels = matrix_of(relation)
    assert np.array_equal(levels, rank_levels(x, x, RANKS, LEVELS, metric, exclude_self=True))
    assert (np.diag(levels) == 0).all()
    if metric != "ip":
        assert levels[3, 7] == levels[7, 3] == 7
    rows = rng.permutation(30)[:12]
    assert np.array_equal(relation.levels[relation.block(rows, rows)], levels[np.ix_(rows, rows)])


def test_a_common_offset_changes_nothing(rng):
    query_x, database_x = rng.normal(size=(6, 5)), rng.normal(size=(40, 5))
    moved = nearest_ranks(query_x + 1e6, database_x + 1e6, RANKS, LEVELS, "l2")
    plain = nearest_ranks(query_x, database_x, RANKS, LEVELS, "l2")
    assert np.array_equal(matrix_of(moved), matrix_of(plain))


def test_ranks_beyond_the_items_take_all_of_them():
    relation = nearest_ranks([[0.0]], [[1.0], [2.0], [3.0]], (100, 2), (1, 4), "l2")
    assert matrix_of(relation).tolist() == [[4, 4, 1]]
    alone = nearest_ranks([[1.0]], [[1.0]], exclude_self=True)
    assert matrix_of(alone).tolist() == [[0]]


def test_rows_of_zeros_have_a_cosine_of_zero():
    relation = nearest_ranks([[1.0, 0.0]], [[0.0, 0.0], [1.0, 1.0], [-1.0, 0.0]], (1, 2), (2, 1))
    assert matrix_of(relation).tolist() == [[1, 2, 0]]


def test_it_serves_evaluation_as_other_affinities_do(rng):
    query_x, database_x = rng.normal(size=(5, 8)), rng.normal(size=(60, 8))
    queries, database = (BinaryCodes.from_logits(x) for x in (query_x, database_x))
    relation = nearest_ranks(query_x, database_x, RANKS, LEVELS)
    counts = count_ties(queries, database, relation).counts
    assert counts.sum(axis=1).tolist() == [[49, 6, 3, 2]] * 5
    assert 0 < evaluate(queries, database, relation, "nDCG@10").mean["nDCG@10"] <= 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"query_x": [[np.nan]]}, "query_x must be finite"),
        ({"database_x": [["a"]]}, "database_x must be real numbers"),
        ({"query_x": [[1.0, 2.0]]}, "query_x has 2 features and database_x has 1"),
        ({"ranks": (1,)}, "two lists of equal length"),
        ({"ranks": (), "levels": ()}, "two lists of equal length"),
        ({"ranks": (0, 5)}, "positive integers, all different"),
        ({"ranks": (5, 5)}, "positive integers, all different"),
        ({"ranks": (1.5, 3.0)}, "positive integers, all different"),
        ({"levels": (1, 2)}, "must not fall as items come nearer"),
        ({"levels": (2, -1)}, "non-negative"),
        ({"metric": "hamming"}, "metric must be one of cosine, ip, l2"),
        ({"exclude_self": 1}, "exclude_self must be True or False"),
        ({"exclude_self": True}, "must be the same rows where exclude_self is True"),
    ],
)
def test_what_makes_no_ranking_is_refused(changes, says):
    arguments = {
        "query_x": [[1.0]],
        "database_x": [[1.0], [2.0]],
        "ranks": (1, 2),
        "levels": (2, 1),
    }
    with pytest.raises(InputError, match=says):
        nearest_ranks(**{**arguments, **changes})
