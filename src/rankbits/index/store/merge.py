"""Merging parts without holding them in memory.

A window of each part is taken at a time, up to the smallest last id of the windows: no later window
can hold a smaller one. What a window yields is cut to whole groups; the rest waits. What a window
reads of a file was compared with its checksums, so nothing damaged is written anew.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rankbits.index.store.part import Part
from rankbits.index.store.segment import GROUP, Segment, aligned, as_range, planes_of

_WINDOW = 1 << 24  # bytes of codes and ids in memory at a time, of all parts together


class Extent(NamedTuple):
    """How many items several parts have, and their smallest and largest id."""

    n: int
    first: int
    last: int


def extent(parts: Sequence[Part]) -> Extent:
    """What a merge of parts will hold."""
    n, lows, highs = 0, [], []
    for part in parts:
        if part.n_alive == 0:
            continue
        rows = part.alive_rows()
        low, high = (0, len(part.segment) - 1) if rows is None else (int(rows[0]), int(rows[-1]))
        n += part.n_alive
        lows.append(_id_of(part, low))
        highs.append(_id_of(part, high))
    return Extent(n, min(lows, default=0), max(highs, default=-1))


def _id_of(part: Part, row: int) -> int:
    return int(part.segment.rows_between(row, row + 1)[1][0])


def merged_in_memory(parts: Sequence[Part]) -> Segment:
    """One segment of what is left of parts, whose ids differ."""
    if len(parts) == 1 and parts[0].alive is None:
        return parts[0].segment
    first = parts[0].segment
    n = sum(part.n_alive for part in parts)
    planes, n_groups = aligned((-(-n // GROUP), first.planes.shape[1], GROUP)), 0
    ids = []
    for chunk in merged_chunks(parts):
        planes[n_groups : n_groups + len(chunk.planes)] = chunk.planes
        n_groups += len(chunk.planes)
        ids.append(chunk.id_array())
    return Segment(first.n_bits, planes, as_range(np.concatenate(ids)))


def merged_chunks(parts: Sequence[Part], window: int = _WINDOW) -> Iterator[Segment]:
    """Items of parts, whose ids differ, in order of id; chunks but the last are whole groups."""
    parts = [part for part in parts if part.n_alive]
    if not parts:
        return
    n_bits, width = parts[0].segment.n_bits, parts[0].segment.planes.shape[1]
    size = max(1, window // (width + 8) // len(parts))
    packed, ids = np.empty((0, width), np.uint8), np.empty(0, np.int64)
    for more_packed, more_ids in _windows(parts, size):
        packed, ids = np.concatenate([packed, more_packed]), np.concatenate([ids, more_ids])
        n_whole = len(ids) // GROUP * GROUP
        if n_whole:
            yield Segment(n_bits, planes_of(packed[:n_whole]), ids[:n_whole])
        packed, ids = packed[n_whole:], ids[n_whole:]
    if len(ids):
        yield Segment(n_bits, planes_of(packed), ids)


class _Window:
    """The rows of a part that are in memory and were not taken yet."""

    def __init__(self, part: Part, size: int) -> None:
        self._part, self._size = part, size
        self._n_read = 0
        self._packed, self._ids = part.rows_between(0, 0)

    def fill(self) -> bool:
        """Read on if nothing is left; whether there is anything."""
        n = len(self._part.segment)
        while len(self._ids) == 0 and self._n_read < n:
            stop = min(self._n_read + self._size, n)
            self._packed, self._ids = self._part.rows_between(self._n_read, stop)
            self._n_read = stop
        return len(self._ids) > 0

    @property
    def last(self) -> int:
        """The largest id in memory."""
        return int(self._ids[-1])

    def take(self, limit: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows whose ids are no larger than a limit."""
        n = int(np.searchsorted(self._ids, limit, side="right"))
        packed, ids = self._packed[:n], self._ids[:n]
        self._packed, self._ids = self._packed[n:], self._ids[n:]
        return packed, ids


def _windows(parts: Sequence[Part], size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Packed codes and ids, in order of id over all windows."""
    windows = [_Window(part, size) for part in parts]
    while windows := [window for window in windows if window.fill()]:
        limit = min(window.last for window in windows)
        codes, ids = zip(*(window.take(limit) for window in windows), strict=True)
        packed, window_ids = np.concatenate(codes), np.concatenate(ids)
        if (np.diff(window_ids) < 0).any():
            order = np.argsort(window_ids, kind="stable")
            packed, window_ids = packed[order], window_ids[order]
        yield packed, window_ids
