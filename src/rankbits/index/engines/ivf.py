"""Inverted lists: approximate search that looks only into the lists of near centers.

Centers are codes, learned by k-means in Hamming space: each is the majority of the bits of its
items. What is returned is right in distance and order; an item in a list that the query did not
look into is missed.

Notation:
    probes  lists that a query looks into
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankbits import _check, _native
from rankbits.codes import BinaryCodes
from rankbits.index.engines.base import QUERIES_A_THREAD, SEARCH_OPTION, Engine, Options, Request
from rankbits.index.results import Ragged
from rankbits.index.store.segment import GROUP, Segment, planes_of

_ALL = np.empty(0, np.uint64)
_NO_ROW = np.uint32(0xFFFFFFFF)
_ROUNDS = 10  # of k-means
_SAMPLE = 128  # training items a center


@dataclass(frozen=True)
class IvfOptions(Options):
    """Number of lists of a part, None for the root of its size, and how many a query looks into."""

    n_lists: int | None = None
    n_probes: int = field(default=16, metadata=SEARCH_OPTION)

    def __post_init__(self) -> None:
        if self.n_lists is not None:
            _check.whole("n_lists", self.n_lists, 1, 1 << 20)
        _check.whole("n_probes", self.n_probes, 1)


class Ivf(Engine):
    """Lists of one segment, about √n of them, each laid out as planes of its own."""

    name = "ivf"
    is_exact = False
    summary = "compares with the codes in the lists of near centers"
    options_class = IvfOptions

    def __init__(self, segment: Segment, options: Any, n_threads: int) -> None:
        codes = segment.codes()
        n_lists = min(options.n_lists or default_lists(len(segment)), len(segment))
        self._centers = Segment.of(centers_of(codes, n_lists, n_threads), range(n_lists))
        lists = nearest_center(self._centers, codes.packed, n_threads)
        order = np.argsort(lists, kind="stable")
        groups = -(-np.bincount(lists, minlength=n_lists) // GROUP)
        self._starts = np.concatenate([[0], np.cumsum(groups)]).astype(np.int64)
        places = self._starts[lists[order]] * GROUP + _places_within(lists[order])
        self._rows = np.full(self._starts[-1] * GROUP, _NO_ROW, np.uint32)
        self._rows[places] = order
        spread = np.zeros((len(self._rows), codes.packed.shape[1]), np.uint8)
        spread[places] = codes.packed[order]
        self._planes = planes_of(spread)
        self._lists = _native.Lists(
            self._planes,
            segment.n_bits,
            self._starts,
            self._rows,
            len(segment),
            self._centers.planes,
            n_lists,
        )

    @property
    def n_bytes(self) -> int:
        """Memory beyond the segment's: the codes again, with rows, in order of list."""
        return self._planes.nbytes + self._rows.nbytes + self._starts.nbytes

    @property
    def n_lists(self) -> int:
        """Number of lists."""
        return len(self._centers)

    def search(self, queries: np.ndarray, allowed: np.ndarray, request: Request) -> Ragged:
        """What lies in the lists of the nearest centers."""
        answer = self._lists.search(
            queries,
            allowed,
            request.k,
            request.radius,
            request.is_complete,
            min(request.options.n_probes, self.n_lists),
            n_threads=min(request.n_threads, 1 + len(queries) // QUERIES_A_THREAD),
        )
        return Ragged(*answer)


def default_lists(n: int) -> int:
    """About √n: as many centers to compare with as items in a list."""
    return max(1, round(math.sqrt(n)))


def centers_of(codes: BinaryCodes, n_lists: int, n_threads: int) -> BinaryCodes:
    """Centers by k-means on a sample; a center that no item chose is drawn again."""
    rng = np.random.default_rng(0)  # one collection has one set of lists, whenever it is built
    n_sample = min(len(codes), _SAMPLE * n_lists)
    sample = codes[np.sort(rng.choice(len(codes), n_sample, replace=False))]
    bits = sample.bits()
    centers = sample[np.sort(rng.choice(n_sample, n_lists, replace=False))]
    for _ in range(_ROUNDS):
        segment = Segment.of(centers, range(n_lists))
        nearest = nearest_center(segment, sample.packed, n_threads)
        order = np.argsort(nearest, kind="stable")
        counts = np.bincount(nearest, minlength=n_lists)
        is_used = counts > 0
        starts = (np.cumsum(counts) - counts)[is_used]
        sums = np.add.reduceat(bits[order], starts, axis=0, dtype=np.int32)
        majority = bits[rng.integers(n_sample, size=n_lists)]
        majority[is_used] = 2 * sums > counts[is_used, None]
        centers = BinaryCodes.from_bits(majority)
    return centers


def nearest_center(centers: Segment, packed: np.ndarray, n_threads: int) -> np.ndarray:
    """The center of each code, of equally near ones the first."""
    parts = []
    for start in range(0, len(packed), 1 << 16):
        block = packed[start : start + (1 << 16)]
        _, _, rows = _native.scan(
            centers.planes,
            len(centers),
            centers.n_bits,
            _ALL,
            block,
            1,
            centers.n_bits,
            False,
            n_threads=n_threads,
        )
        parts.append(rows)
    return np.concatenate(parts)


def _places_within(lists: np.ndarray) -> np.ndarray:
    """For a sorted array of list numbers, the place of each entry in its list."""
    counts = np.bincount(lists)
    return np.arange(len(lists)) - np.repeat(np.cumsum(counts) - counts, counts)
