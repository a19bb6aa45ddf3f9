"""Counting between marks: against a loop over all pairs, and with arrays that do not fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits import _native


def counted_by_loop(marks, distances):
    """Items before and at each mark; of equal marks the first counts."""
    counts = np.zeros((len(marks), 2), int)
    for distance in distances:
        at = next((i for i, mark in enumerate(marks) if mark >= distance), None)
        if at is not None:
            counts[at, int(marks[at] == distance)] += 1
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
    counts = np.zeros((starts[-1], 2), np.uint32)
    ties = _native.RankedTies(np.concatenate(sorted_marks), starts, counts)
    distances = np.tile(np.array(row, float), (len(marks), 1))
    is_open = np.ones(distances.shape, np.uint8)
    assert ties.add_block(distances, np.zeros(len(marks)), is_open, n_threads) == 0
    assert not is_open.any()
    expected = np.concatenate([counted_by_loop(own, row) for own in sorted_marks])
    np.testing.assert_array_equal(counts, expected)
    pairs = np.repeat(np.arange(len(marks)), len(row))
    ties.add_pairs(pairs, distances.ravel())
    np.testing.assert_array_equal(counts, 2 * expected)


def test_a_pair_is_open_where_a_mark_lies_within_the_slack():
    counts = np.zeros((2, 2), np.uint32)
    ties = _native.RankedTies(np.array([1.0, 2.0]), np.array([0, 2]), counts)
    row = np.array([[0.5, 0.9, 1.0, 1.1, 1.5, 1.95, 2.05, 2.2, np.nan]])
    is_open = np.zeros(row.shape, np.uint8)
    assert ties.add_block(row, np.array([0.1250]), is_open) == 6
    assert is_open[0].tolist() == [0, 1, 1, 1, 0, 1, 1, 0, 1]
    assert counts.tolist() == [[1, 0], [1, 0]]


def ties_of(marks=(1.0, 2.0), starts=(0, 2), n_counts=2):
    counts = np.zeros((n_counts, 2), np.uint32)
    return _native.RankedTies(np.array(marks, float), np.array(starts, np.int64), counts)


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
        (
            lambda: ties_of().add_block(np.zeros((2, 3)), np.zeros(1), np.zeros((1, 3), np.uint8)),
            r"distances must have shape \(1, 3\)",
        ),
        (
            lambda: ties_of().add_block(np.zeros((1, 3)), np.zeros(2), np.zeros((1, 3), np.uint8)),
            r"slack must have shape \(1\)",
        ),
        (
            lambda: ties_of().add_block(np.zeros((1, 3)), np.zeros(1), np.zeros((1, 2), np.uint8)),
            r"is_open must have shape \(1, 3\)",
        ),
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
@pytest.mark.parametrize("n_marks", [3, 50, 256])
def test_many_items_between_few_marks_are_counted_by_cells(dtype, n_marks):
    """Items are as far off as the slack allows, and some lie on marks or beyond all of them."""
    rng = np.random.default_rng(n_marks)
    marks = np.sort(rng.standard_normal(n_marks))
    marks[1] = marks[0]  # of equal marks the first counts
    exact = np.concatenate([marks, rng.standard_normal(9000), rng.uniform(-9, 9, 1000)])
    slack = (marks[-1] - marks[0]) / 10_000
    row = (exact + rng.uniform(-0.99, 0.99, len(exact)) * slack).astype(dtype)[None]
    row[0, -1] = np.nan
    counts, is_open = np.zeros((n_marks, 2), np.uint32), np.zeros(row.shape, np.uint8)
    ties = _native.RankedTies(marks, np.array([0, n_marks]), counts)
    n_open = ties.add_block(row, np.array([slack]), is_open)
    open_items = np.flatnonzero(is_open[0])
    assert n_open == len(open_items)
    near = np.abs(row[0].astype(float)[:, None] - marks).min(axis=1) <= 1.001 * slack
    assert set(open_items) <= set(np.flatnonzero(near | np.isnan(row[0])))
    ties.add_pairs(np.zeros(n_open, np.int64), exact[open_items])
    np.testing.assert_array_equal(counts, counted_by_loop(marks, exact))
