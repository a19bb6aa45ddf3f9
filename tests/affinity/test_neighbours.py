"""Levels from distances between vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.counting import neighbour_levels
from rankbits.affinity import _neighbours, distance_quantiles, neighbours
from rankbits.errors import InputError

EVERYTHING = slice(None)


def matrix_of(affinity):
    return affinity.levels[affinity.indices(EVERYTHING, EVERYTHING)]


@given(st.integers(1, 5), st.integers(1, 9), st.integers(1, 6), st.integers(0, 99))
def test_a_pair_has_the_level_of_the_smallest_threshold_it_keeps(
    n_queries, n_items, n_features, seed
):
    rng = np.random.default_rng(seed)
    query_side, item_side = (
        rng.normal(size=(n_queries, n_features)),
        rng.normal(size=(n_items, n_features)),
    )
    cuts, grades = (3.0, 0.7, 1.5), (1, 8, 2)
    relation = neighbours(query_side, item_side, cuts, grades)
    assert np.array_equal(
        matrix_of(relation), neighbour_levels(query_side, item_side, cuts, grades)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint8, bool])
def test_any_number_type_makes_a_vector(rng, dtype):
    query_side, item_side = (
        rng.integers(0, 2, (3, 8)).astype(dtype),
        rng.integers(0, 2, (5, 8)).astype(dtype),
    )
    expected = neighbour_levels(query_side, item_side, (1.5, 1.0), (1, 2))
    assert np.array_equal(
        matrix_of(neighbours(query_side, item_side, (1.5, 1.0), (1, 2))), expected
    )


@pytest.mark.parametrize("square", [1, 2, 3, 5, 7, 11, 2001])
def test_a_pair_exactly_on_a_threshold_is_within_it(square):
    ones = np.zeros((2, square))
    ones[1] = 1.0
    threshold = float(np.linalg.norm(ones[1] - ones[0]))
    shifted = ones + 1000.0
    for x in (ones, shifted):
        assert matrix_of(neighbours(x[:1], x[1:], (threshold,), (1,))).tolist() == [[1]]
        below = np.nextafter(threshold, 0) * (1 - 1e-15)
        assert matrix_of(neighbours(x[:1], x[1:], (below,), (1,))).tolist() == [[0]]


def test_equal_vectors_are_within_the_smallest_threshold_however_long_they_are():
    x = np.full((3, 50), 1e8)
    assert matrix_of(neighbours(x, x, (1e-9, 1.0), (2, 1))).tolist() == [[2] * 3] * 3


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("cells", [1, 1_000, 1 << 17])
def test_levels_on_a_grid_of_ties_do_not_depend_on_the_block(rng, monkeypatch, order, cells):
    monkeypatch.setattr(_neighbours, "_BLOCK_CELLS", cells)
    query_side = np.asarray(rng.integers(0, 3, (40, 30)) * 0.1, order=order)
    item_side = np.asarray(rng.integers(0, 3, (300, 30)) * 0.1, order=order)
    thresholds = [float(np.linalg.norm(query_side[0] - item_side[i])) for i in range(1, 6)]
    cuts = sorted(set(thresholds))
    relation = neighbours(query_side, item_side, cuts, range(len(cuts), 0, -1))
    whole = relation.indices(EVERYTHING, EVERYTHING)
    assert (whole > 0).any()
    for queries, items in ((slice(0, 1), slice(0, 300)), (slice(3, 17), slice(100, 101))):
        assert np.array_equal(relation.indices(queries, items), whole[queries, items])
    monkeypatch.undo()
    single = [
        [relation.indices(slice(q, q + 1), slice(i, i + 1))[0, 0] for i in range(300)]
        for q in (0, 7)
    ]
    assert np.array_equal(single, whole[[0, 7]])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int64])
def test_levels_may_come_in_any_integer_type(dtype):
    relation = neighbours([[0.0]], [[0.5], [2.0]], (1.0, 3.0), np.array([5, 1], dtype))
    assert matrix_of(relation).tolist() == [[5, 1]]


@pytest.mark.parametrize(
    ("cuts", "grades", "says"),
    [
        ((1.0, 2.0), (1,), "equal length"),
        ((), (), "equal length|real numbers"),
        (1.0, 1, "equal length"),
        ((0.0, 1.0), (2, 1), "positive, finite and different"),
        ((-1.0, 1.0), (2, 1), "positive, finite and different"),
        ((1.0, 1.0), (2, 1), "positive, finite and different"),
        ((1.0, np.inf), (2, 1), "positive, finite and different"),
        ((1.0, np.nan), (2, 1), "positive, finite and different"),
        ((1.0, 2.0), (1, 2), "must not fall as items come nearer"),
        ((1.0,), (-1,), "non-negative"),
        ((1.0,), (0.5,), "non-negative integers"),
        (("near",), (1,), "real numbers"),
    ],
)
def test_thresholds_that_make_no_levels_are_refused(cuts, grades, says):
    with pytest.raises(InputError, match=says):
        neighbours([[0.0]], [[1.0]], cuts, grades)


@pytest.mark.parametrize(
    ("x", "says"),
    [
        ([[np.nan]], "finite, got nan in row 0"),
        ([[np.inf]], "finite, got inf in row 0"),
        ([1.0], "shape"),
        ([["a"]], "real numbers"),
        (np.empty((0, 1)), "empty"),
    ],
)
def test_what_is_no_matrix_of_vectors_is_refused_and_named(x, says):
    with pytest.raises(InputError, match=f"^query_x .*{says}"):
        neighbours(x, [[1.0]], (1.0,), (1,))
    with pytest.raises(InputError, match=f"^database_x .*{says}"):
        neighbours([[1.0]], x, (1.0,), (1,))
    with pytest.raises(InputError, match=f"^train_x .*{says}"):
        distance_quantiles(x, (0.5,))


def test_unequal_numbers_of_features_are_refused():
    with pytest.raises(InputError, match="query_x has 1 features and database_x has 2"):
        neighbours([[1.0]], [[1.0, 2.0]], (1.0,), (1,))


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_quantiles_are_those_of_the_distances_of_all_pairs(rng, offset):
    x = rng.normal(size=(60, 4)) + offset
    pairs = [np.linalg.norm(x[i] - x[j]) for i in range(60) for j in range(i)]
    shares = (0.05, 0.5, 0.9)
    assert distance_quantiles(x, shares) == pytest.approx(np.quantile(pairs, shares), rel=1e-7)


def test_quantiles_of_a_large_set_are_seeded_and_near_those_of_all_pairs(rng):
    x = rng.normal(size=(3_000, 2))
    values = distance_quantiles(x, (0.05, 0.5))
    assert np.array_equal(values, distance_quantiles(x, (0.05, 0.5)))
    assert not np.array_equal(values, distance_quantiles(x, (0.05, 0.5), random_state=1))
    # |a - b|^2 of two standard normals in the plane is exponential with mean 4
    assert values == pytest.approx(np.sqrt(-4 * np.log([0.95, 0.5])), rel=0.05)


@pytest.mark.parametrize("shares", [(0.0,), (1.0,), (-0.1,), (np.nan,), 0.5, ("half",), [[0.5]]])
def test_shares_outside_0_and_1_are_refused(shares):
    with pytest.raises(InputError, match=r"^shares must"):
        distance_quantiles([[0.0], [1.0]], shares)


def test_one_row_has_no_distances():
    with pytest.raises(InputError, match="at least two rows"):
        distance_quantiles([[1.0]], (0.5,))
