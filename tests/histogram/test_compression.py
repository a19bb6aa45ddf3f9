"""Counting by distinct codes gives the counts of counting by items.

Compression is considered from 2^23 pairs and 8,192 items on, and chosen by measured cost.
"""

import numpy as np
import pytest

from oracles.counting import counts_by_query, random_codes
from rankbits import affinity, count_ties
from rankbits.affinity import Classes

N_ITEMS, N_QUERIES = 20_000, 430  # 8.6 million pairs


def check(rng, database, labels, n_classes, n_threads=1):
    queries = random_codes(rng, N_QUERIES, database.n_bits)
    mine = rng.integers(0, n_classes + 1, N_QUERIES)
    found = count_ties(queries, database, affinity.classes(mine, labels), n_threads=n_threads)
    columns = (mine[:, None] == labels).astype(np.int64)
    assert np.array_equal(found.counts, counts_by_query(queries, database, columns, 2))


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize(("n_distinct", "n_bits"), [(1, 64), (50, 64), (300, 12), (2_000, 136)])
def test_heavily_collided_codes_are_counted_as_items_are(
    dispatch, rng, n_distinct, n_bits, n_threads
):
    database = random_codes(rng, N_ITEMS, n_bits, n_distinct)
    check(rng, database, rng.integers(0, 3, N_ITEMS), 3, n_threads)


def test_codes_that_hardly_collide_are_counted(dispatch, rng):
    check(rng, random_codes(rng, N_ITEMS, 64), rng.integers(0, 3, N_ITEMS), 3)


def test_one_code_in_many_classes_is_counted_in_each(dispatch, rng):
    database = random_codes(rng, N_ITEMS, 64, 1)
    check(rng, database, rng.integers(0, 200, N_ITEMS), 200)


def test_a_database_that_only_looks_collided_at_its_start_is_counted(dispatch, rng):
    codes = random_codes(rng, N_ITEMS, 64)
    database = codes[np.where(np.arange(N_ITEMS) < 9_000, 0, np.arange(N_ITEMS))]
    check(rng, database, np.arange(N_ITEMS) // 4_000, 5)


def test_a_database_whose_every_second_item_is_the_same_is_counted(dispatch, rng):
    codes = random_codes(rng, N_ITEMS, 64)
    database = codes[np.where(np.arange(N_ITEMS) % 2 == 0, 0, np.arange(N_ITEMS))]
    check(rng, database, rng.integers(0, 3, N_ITEMS), 3)


def test_judgements_are_counted_over_collided_codes(dispatch, rng):
    queries, database = random_codes(rng, N_QUERIES, 16), random_codes(rng, N_ITEMS, 16, 40)
    rows = np.column_stack([rng.integers(0, N_QUERIES, 900), rng.permutation(N_ITEMS)[:900]])
    rows = np.column_stack([rows, rng.integers(0, 4, 900)])
    judged = affinity.judgements(rows, N_QUERIES, N_ITEMS)
    assert not isinstance(judged, Classes)
    found = count_ties(queries, database, judged)
    columns = judged.indices(slice(None), slice(None))
    expected = counts_by_query(queries, database, columns, len(judged.levels))
    assert np.array_equal(found.counts, expected)
