"""What a collection says about itself, and whether all of it is as it must be."""

import os
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from rankbits.errors import FileFormatError
from rankbits.index import _folder
from rankbits.index._merge import Source
from rankbits.index._segment import Segment
from rankbits.index._state import State
from rankbits.index._store import VERSION, Store

_WINDOW = 1 << 20  # ids at a time


def info(state: State, folder: Path) -> dict[str, Any]:
    """Counts and sizes, ready for JSON."""
    files = [_folder.segment_path(folder, sealed.number) for sealed in state.sealed]
    segments = [
        {
            "file": str(path.relative_to(folder)),
            "items": sealed.n_alive,
            "removed": len(sealed) - sealed.n_alive,
            "bytes": sealed.header.file_size,
        }
        for path, sealed in zip(files, state.sealed, strict=True)
    ]
    return {
        "format": VERSION,
        "bits": state.n_bits,
        "items": len(state),
        "unsealed": state.n_pending,
        "removed": sum(len(sealed) - sealed.n_alive for sealed in state.sealed),
        "next_id": state.next_id,
        "change": state.change,
        "bytes": sum(sealed.header.file_size for sealed in state.sealed)
        + os.path.getsize(folder / _folder.DATABASE),
        "segments": segments,
    }


def check(store: Store) -> State:
    """Read everything there is; the first thing that is wrong is a FileFormatError."""
    store.integrity()
    state = store.load()
    for sealed in state.sealed:
        path = _folder.segment_path(store.folder, sealed.number)
        _check_order(path, sealed.segment, sealed.header.first, sealed.header.last)
    sources = [(f"segment {sealed.number}", sealed.source) for sealed in state.sealed]
    if state.pending:
        ids = state.pending_segment.id_array()
        path = store.folder / _folder.DATABASE
        _check_order(path, state.pending_segment, int(ids[0]), int(ids[-1]))
        sources.append(("codes not yet sealed", Source(state.pending_segment, None)))
    for (one, mine), (other, theirs) in combinations(sources, 2):
        twice = _shared(mine, theirs)
        if twice is not None:
            raise FileFormatError(
                f"{store.folder} is damaged: id {twice} is in {one} and in {other}"
            )
    return state


def _check_order(path: Path, segment: Segment, first: int, last: int) -> None:
    if int(segment.ids[0]) != first or int(segment.ids[-1]) != last or first < 0:
        raise FileFormatError(f"{path} is damaged: its ids are not those from {first} to {last}")
    for start in range(0, len(segment), _WINDOW) if isinstance(segment.ids, np.ndarray) else ():
        if (np.diff(segment.ids[start : start + _WINDOW + 1]) <= 0).any():
            raise FileFormatError(f"{path} is damaged: ids from row {start} on do not ascend")


def _shared(mine: Source, theirs: Source) -> int | None:
    """An id that is still there in both, looked for where their ids overlap."""
    if len(mine.segment) > len(theirs.segment):
        mine, theirs = theirs, mine
    low, high = (int(theirs.segment.ids[row]) for row in (0, -1))
    start, stop = mine.n_until(low - 1), mine.n_until(high)
    for at in range(start, stop, _WINDOW):
        ids = mine.ids_between(at, min(at + _WINDOW, stop))
        rows = theirs.alive_rows_of(ids)
        if (rows >= 0).any():
            return int(ids[rows >= 0][0])
    return None
