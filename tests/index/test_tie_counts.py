"""Counts of items by distance are those of a double loop, whatever the history of the index."""

import numpy as np
import pytest

from rankbits import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import Collection, HammingIndex, tie_counts

N_BITS = 21


def counted(queries, items):
    distances = (queries.bits()[:, None] != items.bits()[None]).sum(axis=2)
    return np.array([np.bincount(row, minlength=N_BITS + 1) for row in distances])


@pytest.fixture
def codes(rng):
    return BinaryCodes.from_bits(rng.integers(0, 2, (900, N_BITS)))


@pytest.mark.parametrize("cells", [1, 1 << 9, 1 << 20])
def test_counts_of_a_changed_collection(codes, rng, tmp_path, monkeypatch, cells):
    monkeypatch.setattr(tie_counts, "_BLOCK_CELLS", cells)
    queries = BinaryCodes.from_bits(rng.integers(0, 2, (7, N_BITS)))
    with Collection.create(tmp_path / "c", N_BITS) as collection:
        collection.add(codes[:500])
        collection.seal()
        collection.add(codes[500:])
        collection.remove(np.arange(0, 900, 4))
        ids = np.flatnonzero(np.arange(900) % 4)
        assert np.array_equal(collection.tie_counts(queries), counted(queries, codes[ids]))
        some = np.sort(rng.choice(ids, 200, replace=False))
        is_allowed = np.isin(ids, some)
        for allowed in (some, is_allowed, np.append(some, 5000)):
            counts = collection.tie_counts(queries, allowed=allowed, n_threads=2)
            assert np.array_equal(counts, counted(queries, codes[some]))
        near = collection.within(queries, 6)
        assert collection.tie_counts(queries)[:, :7].sum(axis=1).tolist() == near.counts.tolist()


def test_factors_do_not_count(codes, rng):
    index = HammingIndex(N_BITS, factors=True)
    index.add(codes, factors=rng.integers(0, 256, (900, 2), np.uint8))
    assert np.array_equal(index.tie_counts(codes[:3]), counted(codes[:3], codes))


def test_nothing_is_counted_without_items_or_queries(codes):
    index = HammingIndex(N_BITS)
    assert index.tie_counts(codes[:2]).tolist() == [[0] * (N_BITS + 1)] * 2
    index.add(codes)
    assert index.tie_counts(codes[:0]).shape == (0, N_BITS + 1)
    with pytest.raises(InputError, match="bits"):
        index.tie_counts(BinaryCodes.from_bits([[0, 1]]))
