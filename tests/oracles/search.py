"""Twins of search, written from the definitions: unpacked bits, stable sorts, a dictionary.

`Model` is a collection as a dictionary of codes by id; it ranks all of them, as a list of
(distance, id) for each query, of which a search is some beginning.
`codes_like` draws codes of a shape that is hard on some engine.
"""

from itertools import pairwise

import numpy as np

from oracles.counting import random_codes
from rankbits import BinaryCodes

BIT_LENGTHS = (
    *(1, 7, 8, 12, 31, 32, 48, 64, 96, 127, 128, 129, 200),
    *(240, 241, 248, 249, 256, 300, 1000, 4096),
)
SIZES = (0, 1, 63, 64, 65, 200)
SHAPES = ("uniform", "few", "one", "near", "opposite")
NO_DISTANCE, NO_ID = 2147483647, -1


def distances_by_bits(queries, database):
    """Distances as an int array (queries, items), by comparing unpacked bits."""
    theirs = database.bits()
    rows = [(theirs != mine).sum(axis=1) for mine in queries.bits()]
    return np.array(rows, np.int64).reshape(len(queries), len(database))


class Model:
    """A collection as a dictionary: id -> bits."""

    def __init__(self, n_bits):
        self.n_bits = n_bits
        self.items = {}

    def upsert(self, codes, ids):
        self.items.update(zip(np.asarray(ids).tolist(), codes.bits(), strict=True))

    def remove(self, ids):
        for gone in np.asarray(ids).tolist():
            del self.items[gone]

    @property
    def ids(self):
        return np.array(sorted(self.items), np.int64)

    @property
    def codes(self):
        """Codes in ascending order of id."""
        bits = np.array([self.items[i] for i in sorted(self.items)], np.uint8)
        return BinaryCodes(np.packbits(bits.reshape(-1, self.n_bits), axis=1), self.n_bits)

    def ranked(self, queries, allowed=None):
        """All items that may be found, for each query, in order of (distance, id)."""
        ids = self.ids
        kept = np.ones(len(ids), bool) if allowed is None else np.isin(ids, np.asarray(allowed))
        found = []
        for row in distances_by_bits(queries, self.codes):
            order = np.argsort(row[kept], kind="stable")
            pairs = zip(row[kept][order].tolist(), ids[kept][order].tolist(), strict=True)
            found.append(list(pairs))
        return found


def nearest(ranked, k):
    """The first k of each query."""
    return [row[:k] for row in ranked]


def nearest_with_ties(ranked, k):
    """The first k of each query and whatever is as far as the last of them."""
    return [row if len(row) <= k else within([row], row[k - 1][0])[0] for row in ranked]


def within(ranked, radius):
    return [[pair for pair in row if pair[0] <= radius] for row in ranked]


def model_of(codes, ids=None):
    model = Model(codes.n_bits)
    model.upsert(codes, np.arange(len(codes)) if ids is None else ids)
    return model


def pairs_of_table(found):
    """Lists of (distance, id) from two arrays (queries, k); checks what fills empty places."""
    distances, ids = found
    assert (distances.dtype, ids.dtype) == (np.int32, np.int64)
    assert distances.shape == ids.shape
    is_empty = ids == NO_ID
    assert np.array_equal(is_empty, distances == NO_DISTANCE)
    assert (np.diff(is_empty.astype(int), axis=1) >= 0).all()
    return [
        list(zip(row[~none].tolist(), mine[~none].tolist(), strict=True))
        for row, mine, none in zip(distances, ids, is_empty, strict=True)
    ]


def pairs_of_ragged(found):
    """Lists of (distance, id) from (offsets, distances, ids)."""
    offsets, distances, ids = found
    assert (offsets.dtype, distances.dtype, ids.dtype) == (np.int64, np.int32, np.int64)
    assert offsets[0] == 0
    assert offsets[-1] == len(distances) == len(ids)
    pairs = list(zip(distances.tolist(), ids.tolist(), strict=True))
    return [pairs[a:b] for a, b in pairwise(offsets.tolist())]


def flipped(rng, codes, chance):
    """The codes with each bit turned over with some chance."""
    bits = codes.bits()
    return BinaryCodes.from_bits(bits ^ (rng.random(bits.shape) < chance)) if len(bits) else codes


def opposite(codes):
    """The codes with every bit turned over: as far away as can be."""
    return BinaryCodes(np.packbits(1 - codes.bits(), axis=1), codes.n_bits)


def codes_like(shape, rng, n, n_bits):
    """n codes: anywhere, on three codes, on one, about one, or about two opposite ones."""
    if n == 0:
        return BinaryCodes(np.empty((0, -(-n_bits // 8)), np.uint8), n_bits)
    if shape == "uniform":
        return random_codes(rng, n, n_bits)
    if shape in ("few", "one"):
        return random_codes(rng, n, n_bits, 3 if shape == "few" else 1)
    centre = random_codes(rng, n, n_bits, 1)
    near = flipped(rng, centre, 0.05)
    if shape == "near":
        return near
    turned = rng.random(n) < 0.5
    return BinaryCodes(np.where(turned[:, None], opposite(near).packed, near.packed), n_bits)


def queries_about(rng, codes, n):
    """Queries: codes as they are, turned over, a few bits off, and anywhere, in turns."""
    n_bits = codes.n_bits
    if n == 0 or len(codes) == 0:
        return codes_like("uniform", rng, n, n_bits)
    some = codes[rng.integers(0, len(codes), n)]
    kinds = (some, opposite(some), flipped(rng, some, 0.1), random_codes(rng, n, n_bits))
    return BinaryCodes(np.stack([kinds[q % 4].packed[q] for q in range(n)]), n_bits)
