"""Segments: codes that never change, in ascending order of id.

A segment holds its codes as planes, [group][byte][64 items], which is what the native kernels read,
in memory or in a mapped file. Rows stand in order of id, so whatever is ordered by (distance, row)
within a segment is ordered by (distance, id).

Notation, here and in the whole room:
    id   the caller's name of an item, any int64 from 0 on
    row  the place of an item in its segment

In an index with factors, codes are stored as records: the two bytes of an item's factors and then
its code. Only states, and the searches, know the difference.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from rankbits import _native
from rankbits.codes import BinaryCodes

GROUP = 64  # items
FACTOR_BYTES = 2  # that stand before the code of each item of an index with factors
FACTOR_BITS = 8 * FACTOR_BYTES
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

    is_mapped: ClassVar[bool] = False  # whether the bytes are those of a file

    @classmethod
    def of(cls, codes: BinaryCodes, ids: Ids) -> "Segment":
        """A segment of codes whose ids differ; they may come in any order."""
        packed = codes.packed
        if isinstance(ids, np.ndarray):
            if (np.diff(ids) < 0).any():
                order = np.argsort(ids, kind="stable")
                packed, ids = packed[order], ids[order]
            ids = as_range(ids)
        return Segment(codes.n_bits, planes_of(packed), ids)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_bytes(self) -> int:
        """Memory, or mapped file, that codes and ids take."""
        return self.planes.nbytes + (self.ids.nbytes if isinstance(self.ids, np.ndarray) else 0)

    @property
    def is_damaged(self) -> bool:
        """Whether the bytes are no longer what they were; those in memory always are."""
        return False

    def require_same_file(self) -> None:
        """Raise if the bytes are no longer what they were."""

    def in_memory(self) -> "Segment":
        """The same with bytes of its own."""
        planes = aligned(self.planes.shape)
        planes[...] = self.planes
        ids = self.ids if isinstance(self.ids, range) else self.ids.copy()
        return Segment(self.n_bits, planes, ids)

    @cached_property
    def without_factors(self) -> "Segment":
        """The codes of records alone, copied at first use: most engines read nothing else."""
        planes = aligned((len(self.planes), self.planes.shape[1] - FACTOR_BYTES, GROUP))
        planes[...] = self.planes[:, FACTOR_BYTES:]
        return Segment(self.n_bits - FACTOR_BITS, planes, self.ids)

    def copy_without_factors(self) -> "Segment | None":
        """The codes of records alone if they were copied already."""
        return self.__dict__.get("without_factors")

    def codes(self, rows: np.ndarray | None = None) -> BinaryCodes:
        """The codes of some rows, or of all."""
        n = len(self) if rows is None else len(rows)
        packed = np.empty((n, self.planes.shape[1]), np.uint8)
        if n:
            chosen = _NO_ROWS if rows is None else np.ascontiguousarray(rows, np.int64)
            _native.from_planes(self.planes, chosen, packed)
        return BinaryCodes(packed, self.n_bits)

    def packed_between(self, start: int, stop: int) -> np.ndarray:
        """Packed codes of the rows from start up to stop."""
        low = start // GROUP
        packed = packed_of(self.planes[low : -(-stop // GROUP)])
        return packed[start - low * GROUP : stop - low * GROUP]

    def rows_between(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Packed codes and ids of the rows from start up to stop, fit to be written elsewhere."""
        return self.packed_between(start, stop), self.ids_of(np.arange(start, stop))

    def id_array(self) -> np.ndarray:
        """The ids as an int64 array."""
        return self.ids_of(np.arange(len(self))) if isinstance(self.ids, range) else self.ids

    def ids_of(self, rows: np.ndarray) -> np.ndarray:
        """Ids of some rows."""
        if isinstance(self.ids, range):
            return np.asarray(rows + self.ids.start if self.ids.start else rows, np.int64)
        return np.asarray(self.ids[rows], np.int64)

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Rows of some ids, -1 for those that are not here."""
        if isinstance(self.ids, range):
            inside = (ids >= self.ids.start) & (ids < self.ids.stop)
            return np.where(inside, ids - self.ids.start, -1)
        rows = np.searchsorted(self.ids, ids)
        rows[rows == len(self.ids)] = 0
        return np.where(self.ids[rows] == ids, rows, -1) if len(self.ids) else rows - 1

    def n_until(self, limit: int) -> int:
        """Number of rows whose ids are no larger than a limit."""
        if isinstance(self.ids, range):
            return min(max(limit + 1 - self.ids.start, 0), len(self.ids))
        return int(np.searchsorted(self.ids, limit, side="right"))


def planes_of(packed: np.ndarray) -> np.ndarray:
    """Packed codes, row after row, as planes."""
    planes = aligned((-(-len(packed) // GROUP), packed.shape[1], GROUP))
    _native.to_planes(packed, planes)
    return planes


def packed_of(planes: np.ndarray) -> np.ndarray:
    """The packed codes of whole groups, row after row; decoded in order, which is fastest."""
    packed = np.empty((len(planes) * GROUP, planes.shape[1]), np.uint8)
    if len(packed):
        _native.from_planes(planes, _NO_ROWS, packed)
    return packed


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
