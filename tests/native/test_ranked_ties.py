"""Counting between marks: against a loop over all items, and with arrays that do not fit."""

from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits import _native
from rankbits.histogram import compress_ties


def counted_by_loop(marks, distances):
    """Items before and at each mark; of equal marks the first counts."""
    counts = np.zeros((2, len(marks)), int)
    for distance in distances:
        at = bisect_left(marks, distance)
        if at < len(marks):
            counts[int(marks[at] == distance), at] += 1
    return counts


numbers = st.one_of(
    st.integers(-4, 4).map(float),
    st.floats(-1e6, 1e6, allow_nan=False),
    st.sampled_from([-1e308, 1e308, 1e-308, 0.0, -0.0, np.inf, -np.inf]),
)


marks_of_a_query = st.lists(st.floats(-1e6, 1e6) | st.integers(-4, 4).map(float))


@given(
    st.lists(marks_of_a_query, min_size=1, max_size=4),
    st.lists(numbers, max_size=20),
    st.integers(1, 2),
)
def test_exact_distances_are_counted_at_and_before_the_first_mark_not_below(marks, row, n_threads):
    sorted_marks = [np.sort(np.array(own, float)) for own in marks]
    starts = np.cumsum([0, *map(len, marks)])
    counts = np.zeros((2, starts[-1]), np.uint32)
    ties = _native.RankedTies(np.concatenate(sorted_marks), starts, counts)
    distances = np.tile(np.array(row, float), (len(marks), 1))
    is_open = np.ones(distances.shape, np.uint8)
    left_out = np.zeros_like(is_open)
    assert ties.add_block(distances, np.zeros(len(marks)), left_out, is_open, n_threads) == 0
    assert not is_open.any()
    expected = np.concatenate([counted_by_loop(own, row) for own in sorted_marks], axis=1)
    np.testing.assert_array_equal(counts, expected)
    pairs = np.repeat(np.arange(len(marks)), len(row))
    ties.add_pairs(pairs, distances.ravel())
    np.testing.assert_array_equal(counts, 2 * expected)


def test_a_pair_is_open_where_a_mark_lies_within_the_slack():
    counts = np.zeros((2, 2), np.uint32)
    ties = _native.RankedTies(np.array([1.0, 2.0]), np.array([0, 2]), counts)
    row = np.array([[0.5, 0.9, 1.0, 1.1, 1.5, 1.95, 2.05, 2.2, np.nan]])
    is_open = np.zeros(row.shape, np.uint8)
    assert ties.add_block(row, np.array([0.1250]), np.zeros_like(is_open), is_open) == 6
    assert is_open[0].tolist() == [0, 1, 1, 1, 0, 1, 1, 0, 1]
    assert counts.tolist() == [[1, 1], [0, 0]]


def ties_of(marks=(1.0, 2.0), starts=(0, 2), n_counts=2):
    counts = np.zeros((2, n_counts), np.uint32)
    return _native.RankedTies(np.array(marks, float), np.array(starts, np.int64), counts)


def add_block(distances, n_slack, is_left_out, is_open):
    masks = (np.zeros(shape, np.uint8) for shape in (is_left_out, is_open))
    return ties_of().add_block(np.zeros(distances), np.zeros(n_slack), *masks)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: ties_of(starts=(0, 3)), "starts must ascend from 0 to at most 2"),
        (lambda: ties_of(starts=(1, 2)), "starts must go from 0 to all marks"),
        (lambda: ties_of(starts=(0, 1)), "starts must go from 0 to all marks"),
        (lambda: ties_of(starts=()), "starts must have a number more"),
        (lambda: ties_of(marks=(2.0, 1.0)), "marks of a query must ascend"),
        (lambda: ties_of(marks=(np.nan, 1.0)), "marks of a query must ascend"),
        (lambda: ties_of(n_counts=3), r"counts must have shape \(2, 2\)"),
        (lambda: add_block((2, 3), 1, (1, 3), (1, 3)), r"distances must have shape \(1, 3\)"),
        (lambda: add_block((1, 3), 2, (1, 3), (1, 3)), r"slack must have shape \(1\)"),
        (lambda: add_block((1, 3), 1, (1, 2), (1, 3)), r"is_left_out must have shape \(1, 3\)"),
        (lambda: add_block((1, 3), 1, (1, 3), (1, 2)), r"is_open must have shape \(1, 3\)"),
        (lambda: ties_of().add_pairs(np.array([1]), np.zeros(1)), "queries must be below 1"),
        (lambda: ties_of().add_pairs(np.array([-1]), np.zeros(1)), "queries must be at least 0"),
        (lambda: ties_of().add_pairs(np.array([0]), np.zeros(2)), r"distances must have shape"),
        (
            lambda: ties_of().add_pairs(np.array([0]), np.array([np.nan])),
            "must be numbers",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_marks", [3, 50, 256, 257, 3000])
def test_many_items_are_counted_among_few_marks_and_among_many(dtype, n_marks):
    """Items are as far off as the slack allows, and some lie on marks or beyond all of them."""
    rng = np.random.default_rng(n_marks)
    marks = np.sort(rng.standard_normal(n_marks))
    marks[1] = marks[0]  # of equal marks the first counts
    exact = np.concatenate([marks, rng.standard_normal(9000), rng.uniform(-9, 9, 1000)])
    slack = (marks[-1] - marks[0]) / 10_000
    row = (exact + rng.uniform(-0.99, 0.99, len(exact)) * slack).astype(dtype)[None]
    row[0, -1] = np.nan
    counts, is_open = np.zeros((2, n_marks), np.uint32), np.zeros(row.shape, np.uint8)
    ties = _native.RankedTies(marks, np.array([0, n_marks]), counts)
    is_left_out = (rng.random(row.shape) < 0.1).astype(np.uint8)
    n_open = ties.add_block(row, np.array([slack]), is_left_out, is_open)
    open_items = np.flatnonzero(is_open[0])
    assert n_open == len(open_items)
    assert not is_left_out[0, open_items].any()
    near = np.abs(row[0].astype(float)[:, None] - marks).min(axis=1) <= 1.001 * slack
    assert set(open_items) <= set(np.flatnonzero(near | np.isnan(row[0])))
    ties.add_pairs(np.zeros(n_open, np.int64), exact[open_items])
    expected = counted_by_loop(marks, exact[is_left_out[0] == 0])
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("shape", ["far outliers", "two values", "one value", "one dense spot"])
def test_any_distribution_of_many_marks_is_counted_right(shape):
    rng = np.random.default_rng(0)
    exact = {
        "far outliers": lambda: np.append(rng.standard_normal(4000) * 1e-9, [-1e12, 1e12, 5.0]),
        "two values": lambda: rng.integers(0, 2, 4000).astype(float),
        "one value": lambda: np.full(4000, 0.1),
        "one dense spot": lambda: np.append(rng.random(70_000) * 1e-300, rng.random(900)),
    }[shape]()
    marks, row = np.sort(rng.permutation(exact)[::2]), np.append(exact, [-1e13, 1e13])
    counts, starts = np.zeros((2, len(marks)), np.uint32), np.array([0, len(marks)])
    ties = _native.RankedTies(marks, starts, counts)
    is_open = np.zeros((1, len(row)), np.uint8)
    ties.add_block(row[None], np.zeros(1), np.zeros_like(is_open), is_open)
    np.testing.assert_array_equal(counts, counted_by_loop(marks, row))


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2), st.integers(0, 2)), max_size=8),
    st.integers(0, 3),
    st.integers(0, 12),
    st.sampled_from([np.uint8, np.uint16]),
)
def test_the_table_of_marks_has_the_ties_of_all_items_in_order(steps, n_behind, depth, dtype):
    """Each step is a mark: levels of relevant items there, irrelevant ones before and at it."""
    ties, marks, positions, counts = [], [], [], []
    for value, (levels, before, at) in enumerate(steps):
        own = [1] * (levels % 3) + [2] * (levels // 2)
        ties += [[before, 0, 0], [at, own.count(1), own.count(2)]]
        marks, positions = marks + [float(value)] * len(own), positions + own
        counts += [(before, at)] + [(0, 0)] * (len(own) - 1)
    ties.append([n_behind, 0, 0])
    table = np.zeros((2 * len(marks) + 1, 3), np.int64)
    n_ties = _native.tabulate_ties(
        np.array(marks, float),
        np.array(positions, dtype),
        np.array(counts, np.uint32).reshape(-1, 2).T.copy(),
        int(np.sum(ties)),
        depth,
        table,
    )
    expected = compress_ties(np.array(ties).T, depth).T
    np.testing.assert_array_equal(table[:n_ties], expected)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"positions": np.ones(1, np.uint8)}, r"positions must have shape \(2\)"),
        ({"positions": np.full(2, 2, np.uint8)}, "positions must be below 2"),
        ({"counts": np.zeros((2, 3), np.uint32)}, r"counts must have shape \(2, 2\)"),
        ({"counts": np.ones((2, 2), np.uint32)}, "n_items must be at least as many"),
        ({"table": np.zeros((4, 2), np.int64)}, r"table must have shape \(5, 2\)"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(change, reason):
    arguments = {
        "marks": np.zeros(2),
        "positions": np.ones(2, np.uint8),
        "counts": np.zeros((2, 2), np.uint32),
        "n_items": 5,
        "depth": 5,
        "table": np.zeros((5, 2), np.int64),
    }
    with pytest.raises(ValueError, match=reason):
        _native.tabulate_ties(**(arguments | change))
