"""Inverted lists: approximate search that looks only into the lists of near centres.

Centres are codes, found by k-means in Hamming space: each is the majority of the bits of its items.
What is found is right in distance and order; an item in a list that was not looked into is missed.

Notation:
    probes  lists that a query looks into
"""

import math

import numpy as np

from rankbits import _native
from rankbits.codes import BinaryCodes
from rankbits.index._part import QUERIES_A_THREAD, Wanted
from rankbits.index._results import Ragged
from rankbits.index._segment import GROUP, Segment, aligned

_ALL = np.empty(0, np.uint64)
_NO_ROW = np.uint32(0xFFFFFFFF)
_ROUNDS = 10  # of k-means
_SAMPLE = 128  # training items a centre
DEFAULT_PROBES = 16


class Ivf:
    """Lists of one segment, about √n of them, each laid out as planes of its own."""

    def __init__(self, segment: Segment, n_threads: int, n_lists: int | None = None) -> None:
        codes = segment.codes()
        n_lists = min(n_lists or default_lists(len(segment)), len(segment))
        self._centres = Segment.of(centres_of(codes, n_lists, n_threads), range(n_lists))
        lists = nearest_centre(self._centres, codes.packed, n_threads)
        order = np.argsort(lists, kind="stable")
        groups = -(-np.bincount(lists, minlength=n_lists) // GROUP)
        self._starts = np.concatenate([[0], np.cumsum(groups)]).astype(np.int64)
        places = self._starts[lists[order]] * GROUP + _places_within(lists[order])
        self._rows = np.full(self._starts[-1] * GROUP, _NO_ROW, np.uint32)
        self._rows[places] = order
        spread = np.zeros((len(self._rows), codes.packed.shape[1]), np.uint8)
        spread[places] = codes.packed[order]
        self._planes = aligned((int(self._starts[-1]), codes.packed.shape[1], GROUP))
        _native.to_planes(spread, self._planes)
        self._lists = _native.Lists(
            self._planes,
            segment.n_bits,
            self._starts,
            self._rows,
            len(segment),
            self._centres.planes,
            n_lists,
        )

    @property
    def n_bytes(self) -> int:
        """Memory beyond the segment's: the codes again, with rows, in order of list."""
        return self._planes.nbytes + self._rows.nbytes + self._starts.nbytes

    @property
    def n_lists(self) -> int:
        """Number of lists."""
        return len(self._centres)

    def search(self, queries: np.ndarray, allowed: np.ndarray, wanted: Wanted) -> Ragged:
        """What lies in the lists of the nearest centres."""
        found = self._lists.search(
            queries,
            allowed,
            wanted.k,
            wanted.radius,
            wanted.is_complete,
            min(wanted.n_probes or DEFAULT_PROBES, self.n_lists),
            n_threads=min(wanted.n_threads, 1 + len(queries) // QUERIES_A_THREAD),
        )
        return Ragged(*found)


def default_lists(n: int) -> int:
    """About √n: as many centres to compare with as items in a list."""
    return max(1, round(math.sqrt(n)))


def centres_of(codes: BinaryCodes, n_lists: int, n_threads: int) -> BinaryCodes:
    """Centres by k-means on a sample; a centre that no item chose is drawn again."""
    rng = np.random.default_rng(0)  # one collection has one set of lists, whenever it is built
    n_sample = min(len(codes), _SAMPLE * n_lists)
    sample = codes[np.sort(rng.choice(len(codes), n_sample, replace=False))]
    bits = sample.bits()
    centres = sample[np.sort(rng.choice(n_sample, n_lists, replace=False))]
    for _ in range(_ROUNDS):
        segment = Segment.of(centres, range(n_lists))
        nearest = nearest_centre(segment, sample.packed, n_threads)
        order = np.argsort(nearest, kind="stable")
        counts = np.bincount(nearest, minlength=n_lists)
        is_used = counts > 0
        starts = (np.cumsum(counts) - counts)[is_used]
        sums = np.add.reduceat(bits[order], starts, axis=0, dtype=np.int32)
        majority = bits[rng.integers(n_sample, size=n_lists)]
        majority[is_used] = 2 * sums > counts[is_used, None]
        centres = BinaryCodes.from_bits(majority)
    return centres


def nearest_centre(centres: Segment, packed: np.ndarray, n_threads: int) -> np.ndarray:
    """The centre of each code, of equally near ones the first."""
    parts = []
    for start in range(0, len(packed), 1 << 16):
        block = packed[start : start + (1 << 16)]
        _, _, rows = _native.scan(
            centres.planes,
            len(centres),
            centres.n_bits,
            _ALL,
            block,
            1,
            centres.n_bits,
            False,
            n_threads=n_threads,
        )
        parts.append(rows)
    return np.concatenate(parts)


def _places_within(lists: np.ndarray) -> np.ndarray:
    """For a sorted array of list numbers, the place of each entry in its list."""
    counts = np.bincount(lists)
    return np.arange(len(lists)) - np.repeat(np.cumsum(counts) - counts, counts)
