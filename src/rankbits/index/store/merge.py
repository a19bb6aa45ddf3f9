"""Merging parts without holding them in memory.

A window of each part is taken at a time, up to the smallest last id of the windows: no later window
can hold a smaller one. What a window yields is cut to whole groups; the rest waits.
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
        lows.append(int(part.segment.ids[low]))
        highs.append(int(part.segment.ids[high]))
    return Extent(n, min(lows, default=0), max(highs, default=-1))


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


def _windows(parts: Sequence[Part], size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Packed codes and ids, in order of id over all windows."""
    done = [0] * len(parts)
    while left := [i for i, part in enumerate(parts) if done[i] < len(part.segment)]:
        ends = {i: min(done[i] + size, len(parts[i].segment)) for i in left}
        limit = min(int(parts[i].segment.ids[ends[i] - 1]) for i in left)
        codes, ids = [], []
        for i in left:
            stop = max(done[i], min(ends[i], parts[i].segment.n_until(limit)))
            if stop > done[i]:
                codes.append(parts[i].packed_between(done[i], stop))
                ids.append(parts[i].ids_between(done[i], stop))
            done[i] = stop
        packed, window_ids = np.concatenate(codes), np.concatenate(ids)
        if (np.diff(window_ids) < 0).any():
            order = np.argsort(window_ids, kind="stable")
            packed, window_ids = packed[order], window_ids[order]
        yield packed, window_ids
