"""Codes of several tables: the nearest table counts, and an index searches them together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankbits.methods
from oracles import rsh as oracle
from rankbits import BinaryCodes, methods
from rankbits.codes import smallest_distances
from rankbits.errors import InputError
from rankbits.index import TablesIndex


def packed(tables):
    return [BinaryCodes.from_bits(bits) for bits in tables]


@given(st.integers(0, 10_000), st.integers(1, 3))
def test_smallest_distances_are_those_of_every_pair(seed, n_tables):
    rng = np.random.default_rng(seed)
    query_bits, item_bits = (rng.integers(0, 2, (n_tables, n, 5)) for n in (4, 20))
    distances = smallest_distances(packed(query_bits), packed(item_bits))
    assert distances.dtype == np.uint16
    expected = oracle.nearest(query_bits, item_bits, None, None)
    for row, pairs in zip(distances.tolist(), expected, strict=True):
        assert sorted(zip(row, range(20), strict=True)) == pairs


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 120)
    x = rng.normal(size=(120, 12)) + 2 * np.eye(4, 12)[y]
    return methods.get("rsh", n_bits=8, n_tables=3, random_state=0).fit(x, y), x


@pytest.mark.parametrize("n_tables", [1, 2, 3])
def test_an_index_over_the_tables_finds_what_comparing_every_item_gives(fitted, n_tables):
    hasher, x = fitted
    tables = hasher.encode_tables(x)[:n_tables]
    bits = np.stack([codes.bits() for codes in tables])
    index = TablesIndex(8, n_tables)
    index.add(tables)
    queries = [codes[:9] for codes in tables]
    distances, ids = index.search(queries, k=7)
    pairs = [
        list(zip(*row, strict=True)) for row in zip(distances.tolist(), ids.tolist(), strict=True)
    ]
    assert pairs == oracle.nearest(bits[:, :9], bits, None, 7)
    near = index.within(queries, radius=2)
    expected = oracle.nearest(bits[:, :9], bits, 2, None)
    assert near.offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert near.ids.tolist() == [item for row in expected for _, item in row]


def test_more_tables_find_no_less_within_a_radius(fitted):
    hasher, x = fitted
    codes = hasher.encode_tables(x)
    counts = []
    for n_tables in (1, 2, 3):
        index = TablesIndex(8, n_tables)
        index.add(codes[:n_tables])
        counts.append(np.diff(index.within(codes[:n_tables], radius=1).offsets))
    assert (counts[0] <= counts[1]).all()
    assert (counts[1] <= counts[2]).all()
    assert counts[2].sum() > counts[0].sum()


def test_tables_of_other_lengths_are_refused(rng):
    narrow, wide = (BinaryCodes.from_bits(rng.integers(0, 2, (10, n))) for n in (4, 5))
    with pytest.raises(InputError, match="queries have 4 bits and database has 5"):
        smallest_distances([narrow, narrow], [narrow, wide])


def test_methods_do_not_search():
    assert not hasattr(rankbits.methods, "lookup_tables")
