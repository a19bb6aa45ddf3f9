"""An index with gaps, removed items and ties, and a dictionary that says what is in it."""

import numpy as np
import pytest

from rankbits.index import HammingIndex


class Stock:
    """An index and its items as {id: bits}."""

    def __init__(self, n_bits, n=300):
        rng = np.random.default_rng(n_bits)
        bits = rng.integers(0, 2, (n, n_bits), np.uint8)
        bits[n // 2 :] ^= np.roll(bits[: n - n // 2], 1, axis=0) & (rng.random(n_bits) < 0.3)
        ids = rng.choice(10 * n + 1, n, replace=False) + 2**40 * (np.arange(n) % 3)
        self.n_bits = n_bits
        self.index = HammingIndex(n_bits, kind="scan")
        self.index.add(np.packbits(bits, axis=1), ids)
        self.index.remove(ids[::7])
        self.items = dict(zip(ids.tolist(), bits, strict=True))
        for gone in ids[::7].tolist():
            del self.items[gone]
        self.queries = np.packbits(bits[:9], axis=1)

    def is_in(self, index):
        """Whether an index holds just these items."""
        ids = sorted(self.items)
        codes = index.codes().bits()
        return (
            index.n_bits == self.n_bits
            and index.ids.tolist() == ids
            and np.array_equal(codes, np.array([self.items[i] for i in ids]).reshape(codes.shape))
        )

    def distances(self, query, ids):
        """Distances of some items, bit by bit."""
        bits = np.unpackbits(query, count=self.n_bits)
        return [int((bits != self.items[i]).sum()) for i in ids]

    def are_nearest(self, k, distances, ids):
        """Whether (queries, k) arrays name k different nearest items and how far they are."""
        return all(
            self.distances(query, mine) == list(far)
            and len(set(mine)) == k
            and sorted(self.distances(query, self.items))[:k] == list(far)
            for query, far, mine in zip(
                self.queries, np.asarray(distances).tolist(), np.asarray(ids).tolist(), strict=True
            )
        )


@pytest.fixture
def stock():
    return Stock


@pytest.fixture
def empty():
    return HammingIndex(16)
