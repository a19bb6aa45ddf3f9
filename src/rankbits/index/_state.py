"""What a collection holds at one moment: sealed segments, what was removed of them, codes to seal.

States do not change: a change makes a new one out of the old, which is then written to the disk.
Whatever two states share is the same object, so their difference is what has to be written.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.index._merge import Source
from rankbits.index._part import Part
from rankbits.index._segment import GROUP, Segment, aligned, mask_of
from rankbits.index._segment_file import Header

CHUNK = 1 << 14  # rows whose marks of removal are written together
BATCH = 512  # codes not yet sealed that are written together


@dataclass(frozen=True, eq=False)
class Sealed:
    """A segment in a file, and which of its rows were removed since."""

    number: int
    header: Header
    segment: Segment
    n_alive: int
    removed: np.ndarray | None = None  # words, one bit a row, whole chunks; None while none is

    def __len__(self) -> int:
        return self.header.n

    @property
    def source(self) -> Source:
        """For a merge."""
        return Source(self.segment, self.removed)

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Rows of ids that are still there, -1 for others."""
        return self.source.alive_rows_of(ids)

    def without(self, rows: np.ndarray) -> "Sealed":
        """The same with rows, each once and still there, removed."""
        removed = no_marks(len(self)) if self.removed is None else self.removed.copy()
        np.bitwise_or.at(removed, rows // GROUP, np.uint64(1) << (rows % GROUP).astype(np.uint64))
        return replace(self, removed=removed, n_alive=self.n_alive - len(rows))

    def part(self, *, is_mapped: bool = True) -> Part:
        """For an index."""
        segment = self.segment
        if not is_mapped:
            ids = segment.ids if isinstance(segment.ids, range) else segment.ids.copy()
            planes = aligned(segment.planes.shape)
            planes[...] = segment.planes
            segment = Segment(segment.n_bits, planes, ids)
        part = Part(segment, is_mapped=is_mapped)
        if self.removed is not None:
            part.remove(np.flatnonzero(mask_of(self.removed, len(self))))
        return part


def no_marks(n: int) -> np.ndarray:
    """Words of n rows, none removed."""
    return np.zeros(-(-n // CHUNK) * (CHUNK // GROUP), np.uint64)


@dataclass(frozen=True, eq=False)
class Batch:
    """Codes not yet sealed, which are written together."""

    number: int
    ids: np.ndarray
    packed: np.ndarray


@dataclass(frozen=True, eq=False)
class State:
    """A collection at one moment; `change` counts the changes that led to it."""

    n_bits: int
    next_id: int = 0
    next_segment: int = 1
    change: int = 0
    sealed: tuple[Sealed, ...] = ()
    pending: tuple[Batch, ...] = ()

    def __len__(self) -> int:
        return sum(sealed.n_alive for sealed in self.sealed) + self.n_pending

    @property
    def n_pending(self) -> int:
        """Codes not yet sealed."""
        return sum(len(batch.ids) for batch in self.pending)

    @cached_property
    def pending_segment(self) -> Segment:
        """Codes not yet sealed, in order of id."""
        width = -(-self.n_bits // 8)
        packed = [np.empty((0, width), np.uint8), *(batch.packed for batch in self.pending)]
        ids = [np.empty(0, np.int64), *(batch.ids for batch in self.pending)]
        return Segment.of(BinaryCodes(np.concatenate(packed), self.n_bits), np.concatenate(ids))

    def has(self, ids: np.ndarray) -> np.ndarray:
        """Which ids are there."""
        there = np.zeros(len(ids), bool)
        for sealed in self.sealed:
            there |= sealed.rows_of(ids) >= 0
        if self.pending:
            there |= np.isin(ids, np.concatenate([batch.ids for batch in self.pending]))
        return there

    def without(self, ids: np.ndarray) -> "State":
        """The same without ids that are there; what is left empty is dropped."""
        if len(ids) == 0:
            return self
        sealed = []
        for old in self.sealed:
            rows = old.rows_of(ids)
            new = old.without(rows[rows >= 0]) if (rows >= 0).any() else old
            sealed += [new] if new.n_alive else []
        pending = []
        for batch in self.pending:
            kept = ~np.isin(batch.ids, ids)
            if kept.all():
                pending.append(batch)
            elif kept.any():
                pending.append(Batch(batch.number, batch.ids[kept], batch.packed[kept]))
        return replace(self, sealed=tuple(sealed), pending=tuple(pending))

    def plus(self, codes: BinaryCodes, ids: np.ndarray) -> "State":
        """The same with more codes to seal; the last batch is filled first."""
        batches, number = list(self.pending), 1
        if batches:
            last = batches[-1]
            room = max(BATCH - len(last.ids), 0)
            number = last.number + 1
            if room:
                both = np.concatenate([last.packed, codes.packed[:room]])
                batches[-1] = Batch(last.number, np.concatenate([last.ids, ids[:room]]), both)
                codes, ids = codes[room:], ids[room:]
        for start in range(0, len(ids), BATCH):
            stop = start + BATCH
            mine = ids[start:stop].copy(), codes.packed[start:stop].copy()  # callers keep theirs
            batches.append(Batch(number, *mine))
            number += 1
        return replace(self, pending=tuple(batches))
