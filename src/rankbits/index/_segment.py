"""Segments: codes that no longer change, in ascending order of id.

A segment keeps its codes as planes, [group][byte][64 items], which is what the native kernels read,
in memory or in a mapped file. Since rows stand in order of id, whatever is ordered by (distance,
row) within a segment is ordered by (distance, id).

Notation, here and in the whole room:
    id   what the outside calls an item, any int64 from 0 on
    row  the place of an item in its segment
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits import _native
from rankbits.codes import BinaryCodes

GROUP = 64  # items
MAX_ROWS = (1 << 32) - 2 * GROUP  # of a segment: rows are 32-bit numbers in the kernels
_NO_ROWS = np.empty(0, np.int64)
Ids = range | np.ndarray


@dataclass(frozen=True, eq=False)
class Segment:
    """Codes of n items in order of id.

    Attributes
    ----------
    n_bits : bits in a code
    planes : uint8 array (ceil(n / 64), ceil(n_bits / 8), 64), zero behind the last item
    ids : ascending; a range where they follow one another, which takes no memory, else int64
    """

    n_bits: int
    planes: np.ndarray
    ids: Ids

    @classmethod
    def of(cls, codes: BinaryCodes, ids: Ids) -> "Segment":
        """A segment of codes whose ids differ; they may come in any order."""
        if isinstance(ids, np.ndarray):
            order = np.argsort(ids, kind="stable")
            if not np.array_equal(order, np.arange(len(order))):
                codes, ids = BinaryCodes(codes.packed[order], codes.n_bits), ids[order]
            ids = as_range(ids)
        planes = aligned((-(-len(codes) // GROUP), codes.packed.shape[1], GROUP))
        _native.to_planes(codes.packed, planes)
        return cls(codes.n_bits, planes, ids)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_bytes(self) -> int:
        """Memory, or mapped file, that codes and ids take."""
        return self.planes.nbytes + (self.ids.nbytes if isinstance(self.ids, np.ndarray) else 0)

    def codes(self, rows: np.ndarray | None = None) -> BinaryCodes:
        """The codes of some rows, or of all."""
        n = len(self) if rows is None else len(rows)
        packed = np.empty((n, self.planes.shape[1]), np.uint8)
        if n:
            picked = _NO_ROWS if rows is None else np.ascontiguousarray(rows, np.int64)
            _native.from_planes(self.planes, picked, packed)
        return BinaryCodes(packed, self.n_bits)

    def id_array(self) -> np.ndarray:
        """The ids as an int64 array."""
        return self.ids_of(np.arange(len(self))) if isinstance(self.ids, range) else self.ids

    def ids_of(self, rows: np.ndarray) -> np.ndarray:
        """Ids of some rows."""
        if isinstance(self.ids, range):
            return np.asarray(rows + self.ids.start, np.int64)
        return np.asarray(self.ids[rows], np.int64)

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Rows of some ids, -1 for those that are not here."""
        if isinstance(self.ids, range):
            inside = (ids >= self.ids.start) & (ids < self.ids.stop)
            return np.where(inside, ids - self.ids.start, -1)
        rows = np.searchsorted(self.ids, ids)
        rows[rows == len(self.ids)] = 0
        return np.where(self.ids[rows] == ids, rows, -1) if len(self.ids) else rows - 1


def merged(segments: list[Segment], kept: list[np.ndarray | None]) -> Segment:
    """One segment of several, of each the rows that are kept (None: all)."""
    packed = [s.codes(rows).packed for s, rows in zip(segments, kept, strict=True)]
    ids = [
        s.id_array() if rows is None else s.ids_of(rows)
        for s, rows in zip(segments, kept, strict=True)
    ]
    return Segment.of(BinaryCodes(np.concatenate(packed), segments[0].n_bits), np.concatenate(ids))


def as_range(ids: np.ndarray) -> Ids:
    """Ascending ids as a range if they follow one another, else as they are."""
    if len(ids) and int(ids[-1]) - int(ids[0]) == len(ids) - 1:
        return range(int(ids[0]), int(ids[-1]) + 1)
    return np.ascontiguousarray(ids, np.int64) if len(ids) else range(0)


def aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Uninitialised bytes that begin at a cache line."""
    size = int(np.prod(shape))
    raw = np.empty(size + GROUP, np.uint8)
    start = -raw.ctypes.data % GROUP
    return raw[start : start + size].reshape(shape)


def all_words(n: int) -> np.ndarray:
    """One bit an item, all set: 64 items to a word, the first in the lowest bit."""
    words = np.full(-(-n // GROUP), np.iinfo(np.uint64).max, np.uint64)
    if n % GROUP:
        words[-1] = np.uint64((1 << n % GROUP) - 1)
    return words


def words_of(mask: Any) -> np.ndarray:
    """A boolean mask, one entry an item, as words."""
    packed = np.packbits(np.asarray(mask, bool), bitorder="little")
    padded = np.zeros(-(-len(packed) // 8) * 8, np.uint8)
    padded[: len(packed)] = packed
    return padded.view("<u8").astype(np.uint64, copy=False)


def mask_of(words: np.ndarray, n: int) -> np.ndarray:
    """Words as a boolean mask of n entries."""
    bits = np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), bitorder="little", count=n)
    return bits.astype(bool)
