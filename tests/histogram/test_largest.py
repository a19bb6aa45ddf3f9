"""The most crowded code at each distance."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.counting import BIT_LENGTHS, code_numbers, random_codes
from rankbits.errors import InputError
from rankbits.histogram import largest_codes
from rankbits.histogram._largest import distinct_codes


def largest_by_counting(queries, database):
    """Python's own counter of codes, searched distance by distance."""
    largest = np.zeros((len(queries), queries.n_bits + 1), np.int64)
    n_items = Counter(code_numbers(database))
    for q, mine in enumerate(code_numbers(queries)):
        for code, n in n_items.items():
            distance = bin(mine ^ code).count("1")
            largest[q, distance] = max(largest[q, distance], n)
    return largest


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n_bits", BIT_LENGTHS)
def test_the_largest_code_at_each_distance_is_found(dispatch, rng, n_bits, n_threads):
    queries, database = random_codes(rng, 4, n_bits), random_codes(rng, 60, n_bits, 9)
    found = largest_codes(queries, database, n_threads=n_threads)
    assert found.dtype == np.int64
    assert np.array_equal(found, largest_by_counting(queries, database))


@given(st.integers(1, 5), st.integers(1, 60), st.integers(1, 20), st.integers(1, 9))
def test_any_small_case_is_found(n_queries, n_items, n_bits, n_distinct):
    rng = np.random.default_rng(n_items)
    queries, database = (random_codes(rng, n, n_bits, n_distinct) for n in (n_queries, n_items))
    assert np.array_equal(largest_codes(queries, database), largest_by_counting(queries, database))


@pytest.mark.parametrize("n_bits", BIT_LENGTHS)
def test_distinct_codes_are_those_a_counter_finds(rng, n_bits):
    database = random_codes(rng, 80, n_bits, 7)
    codes, n_items = distinct_codes(database)
    found = {int.from_bytes(bytes(code), "big"): n for code, n in zip(codes, n_items, strict=True)}
    assert found == Counter(code_numbers(database))
    assert (codes.dtype, n_items.dtype) == (np.uint8, np.int64)
    assert codes.shape == (len(found), database.packed.shape[1])


def test_codes_that_cannot_be_compared_are_refused(rng):
    with pytest.raises(InputError, match="queries have 8 bits and database has 9"):
        largest_codes(random_codes(rng, 2, 8), random_codes(rng, 2, 9))
    with pytest.raises(InputError, match="database must not be empty"):
        largest_codes(random_codes(rng, 2, 8), random_codes(rng, 2, 8)[:0])
