"""Products of queries with rows: whole numbers, whose sums are exact in any order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits import _native


def multiplied(rows, queries, n_threads=1):
    products, squares = np.full((len(queries), len(rows)), np.nan), np.full(len(rows), np.nan)
    _native.multiply_rows(rows, queries.astype(float), products, squares, n_threads)
    return products, squares


@pytest.mark.parametrize("level", _native.dispatch_levels())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(
    st.integers(0, 2**32 - 1).map(np.random.default_rng),
    st.integers(0, 150),
    st.integers(1, 40),
    st.integers(0, 8),
    st.integers(1, 3),
)
def test_products_and_squares_of_whole_numbers_are_those_of_integers(
    level, dtype, rng, n_rows, width, n_queries, n_threads
):
    rows = rng.integers(-1000, 1000, (n_rows, width))
    queries = rng.integers(-1000, 1000, (n_queries, width))
    with _native.dispatched(level):
        products, squares = multiplied(rows.astype(dtype), queries, n_threads)
    np.testing.assert_array_equal(products, queries @ rows.T)
    np.testing.assert_array_equal(squares, (rows * rows).sum(axis=1))


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        (((3, 4), (2, 5), (2, 3), (3,)), "queries must have as many numbers as rows"),
        (((3, 4), (2, 4), (3, 2), (3,)), r"products must have shape \(2, 3\)"),
        (((3, 4), (2, 4), (2, 3), (2,)), r"squares must have shape \(3\)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, reason):
    with pytest.raises(ValueError, match=reason):
        _native.multiply_rows(*map(np.zeros, arrays))
