"""Merging segments without holding them in memory.

A window of each source is taken at a time, up to the smallest last id of the windows: no later
window can hold a smaller one. What a window yields is cut to whole groups; the rest waits.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rankbits import _native
from rankbits.index._segment import GROUP, Segment, aligned, mask_of

_WINDOW = 1 << 24  # bytes of codes and ids in memory at a time, of all sources together


class Source(NamedTuple):
    """A segment and the words of its removed rows, one bit a row; None while all are there."""

    segment: Segment
    removed: np.ndarray | None

    def ids_between(self, start: int, stop: int) -> np.ndarray:
        """Ids of the rows from start up to stop that are still there."""
        ids = self.segment.ids_of(np.arange(start, stop))
        return ids if self.removed is None else np.asarray(ids[self._is_there(start, stop)])

    def codes_between(self, start: int, stop: int) -> np.ndarray:
        """Packed codes of the rows from start up to stop that are still there."""
        low, high = start // GROUP, -(-stop // GROUP)
        groups = self.segment.planes[low:high]  # decoded in order, which is faster than by row
        packed = Segment(self.segment.n_bits, groups, range(stop - low * GROUP)).codes().packed
        packed = packed[start - low * GROUP :]
        return packed if self.removed is None else packed[self._is_there(start, stop)]

    def _is_there(self, start: int, stop: int) -> np.ndarray:
        low = start // GROUP
        words = self.removed[low : -(-stop // GROUP)]  # type: ignore[index]
        return ~mask_of(words, stop - low * GROUP)[start - low * GROUP :]

    def alive_rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Rows of ids that are still there, -1 for others."""
        rows = self.segment.rows_of(ids)
        if self.removed is None:
            return rows
        bits = self.removed[rows // GROUP] >> (rows % GROUP).astype(np.uint64) & np.uint64(1)
        return np.where(bits == 0, rows, -1)

    def n_until(self, limit: int) -> int:
        """Rows whose ids are no larger than a limit."""
        ids = self.segment.ids
        if isinstance(ids, range):
            return min(max(limit + 1 - ids.start, 0), len(ids))
        return int(np.searchsorted(ids, limit, side="right"))


class Extent(NamedTuple):
    """How many items several sources have, and their smallest and largest id."""

    n: int
    first: int
    last: int


def extent(sources: Sequence[Source]) -> Extent:
    """What a merge of sources will hold."""
    n, lows, highs = 0, [], []
    for source in sources:
        size = len(source.segment)
        there = size
        low, high = 0, size - 1
        if source.removed is not None:
            is_there = ~mask_of(source.removed, size)
            there = int(is_there.sum())
            low, high = int(is_there.argmax()), size - 1 - int(is_there[::-1].argmax())
        if there:
            n += there
            lows.append(int(source.segment.ids[low]))
            highs.append(int(source.segment.ids[high]))
    return Extent(n, min(lows, default=0), max(highs, default=-1))


def merged_chunks(sources: Sequence[Source], window: int = _WINDOW) -> Iterator[Segment]:
    """Items of sources, whose ids differ, in order of id; chunks but the last are whole groups."""
    sources = [source for source in sources if len(source.segment)]
    if not sources:
        return
    n_bits, width = sources[0].segment.n_bits, sources[0].segment.planes.shape[1]
    size = max(1, window // (width + 8) // len(sources))
    packed, ids = np.empty((0, width), np.uint8), np.empty(0, np.int64)
    for more_packed, more_ids in _windows(sources, size):
        packed, ids = np.concatenate([packed, more_packed]), np.concatenate([ids, more_ids])
        whole = len(ids) // GROUP * GROUP
        if whole:
            yield _segment(n_bits, packed[:whole], ids[:whole])
        packed, ids = packed[whole:], ids[whole:]
    if len(ids):
        yield _segment(n_bits, packed, ids)


def _segment(n_bits: int, packed: np.ndarray, ids: np.ndarray) -> Segment:
    """A segment of codes that are in order of id already."""
    planes = aligned((-(-len(ids) // GROUP), packed.shape[1], GROUP))
    _native.to_planes(packed, planes)
    return Segment(n_bits, planes, ids)


def _windows(sources: Sequence[Source], size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Packed codes and ids, in order of id over all windows."""
    done = [0] * len(sources)
    while left := [i for i, s in enumerate(sources) if done[i] < len(s.segment)]:
        ends = {i: min(done[i] + size, len(sources[i].segment)) for i in left}
        limit = min(int(sources[i].segment.ids[ends[i] - 1]) for i in left)
        codes, ids = [], []
        for i in left:
            stop = max(done[i], min(ends[i], sources[i].n_until(limit)))
            if stop > done[i]:
                codes.append(sources[i].codes_between(done[i], stop))
                ids.append(sources[i].ids_between(done[i], stop))
            done[i] = stop
        packed, every = np.concatenate(codes), np.concatenate(ids)
        if (np.diff(every) < 0).any():
            order = np.argsort(every, kind="stable")
            packed, every = packed[order], every[order]
        yield packed, every
