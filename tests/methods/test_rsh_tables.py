"""Lookup over several tables: the nearest table counts, items come once, in order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import rsh as oracle
from rankbits import BinaryCodes
from rankbits.errors import InputError
from rankbits.methods import lookup_tables


@given(
    st.integers(0, 10_000),
    st.integers(1, 3),
    st.none() | st.integers(0, 5),
    st.none() | st.integers(1, 30),
)
def test_a_lookup_is_what_comparing_every_item_gives(seed, n_tables, radius, k):
    if radius is None and k is None:
        k = 5
    rng = np.random.default_rng(seed)
    mine, theirs = (rng.integers(0, 2, (n_tables, n, 5)) for n in (4, 20))
    queries, database = ([BinaryCodes.from_bits(bits) for bits in side] for side in (mine, theirs))
    found = lookup_tables(queries, database, radius=radius, k=k)
    wanted = oracle.nearest(mine, theirs, radius, k)
    assert found.offsets.tolist() == np.cumsum([0, *map(len, wanted)]).tolist()
    pairs = list(zip(found.distances.tolist(), found.ids.tolist(), strict=True))
    assert pairs == [pair for row in wanted for pair in row]
    assert [part.dtype for part in found] == [np.int64, np.int32, np.int64]


def test_blocks_of_queries_change_nothing(rng, monkeypatch):
    codes = [BinaryCodes.from_bits(rng.integers(0, 2, (30, 9))) for _ in range(2)]
    whole = lookup_tables(codes, codes, radius=3, k=7)
    monkeypatch.setattr("rankbits.methods._tables._BLOCK_CELLS", 70)
    for part, other in zip(lookup_tables(codes, codes, radius=3, k=7), whole, strict=True):
        assert np.array_equal(part, other)


def test_codes_alone_are_one_table(rng):
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (12, 6)))
    for one, listed in zip(
        lookup_tables(codes, codes, k=4), lookup_tables([codes], [codes], k=4), strict=True
    ):
        assert np.array_equal(one, listed)


def test_more_tables_find_no_less_within_a_radius(rng):
    codes = [BinaryCodes.from_bits(rng.integers(0, 2, (50, 12))) for _ in range(3)]
    found = [lookup_tables(codes[:n], codes[:n], radius=2) for n in (1, 2, 3)]
    counts = [np.diff(lookup.offsets) for lookup in found]
    assert (counts[0] <= counts[1]).all()
    assert (counts[1] <= counts[2]).all()
    assert counts[2].sum() > counts[0].sum()


def test_tables_that_do_not_fit_are_refused(rng):
    ten, nine = (BinaryCodes.from_bits(rng.integers(0, 2, (n, 4))) for n in (10, 9))
    wide = BinaryCodes.from_bits(rng.integers(0, 2, (10, 5)))
    with pytest.raises(InputError, match="same tables, at least one, got 2 and 1"):
        lookup_tables([ten, ten], [ten], k=1)
    with pytest.raises(InputError, match="same tables, at least one, got 0 and 0"):
        lookup_tables([], [], k=1)
    with pytest.raises(InputError, match="queries have 4 bits and database has 5"):
        lookup_tables([ten], [wide], k=1)
    with pytest.raises(InputError, match=r"database must have as many codes .* got \[9, 10\]"):
        lookup_tables([ten, ten], [ten, nine], k=1)
    with pytest.raises(InputError, match="queries must be BinaryCodes"):
        lookup_tables([ten.packed], [ten], k=1)
    with pytest.raises(InputError, match="radius or k must be given"):
        lookup_tables(ten, ten)
    with pytest.raises(InputError, match="k must be an integer >= 1"):
        lookup_tables(ten, ten, k=0)
    with pytest.raises(InputError, match="radius must be an integer >= 0"):
        lookup_tables(ten, ten, radius=-1)
