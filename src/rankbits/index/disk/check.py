"""What a collection says about itself, and whether all of it is as it must be."""

import os
from itertools import combinations
from pathlib import Path
from typing import Any

from rankbits.errors import FileFormatError
from rankbits.index.disk import layout
from rankbits.index.disk.database import Database
from rankbits.index.disk.segment_file import FileSegment
from rankbits.index.store.part import Part
from rankbits.index.store.state import State

_STEP = 1 << 20  # ids at a time


def describe(state: State, folder: Path, version: int) -> dict[str, Any]:
    """Counts and sizes, ready for JSON."""
    files: list[dict[str, Any]] = []
    for part in state.parts:
        if isinstance(part.segment, FileSegment):
            path = layout.segment_path(folder, part.number).relative_to(folder)
            size = part.segment.header.file_size
            removed = {"items": part.n_alive, "removed": part.n_removed}
            files.append({"file": str(path), **removed, "bytes": size})
    n_in_files = sum(entry["items"] for entry in files)
    with layout.failures(folder, "read"):
        n_bytes = os.path.getsize(folder / layout.DATABASE)
    return {
        "format": version,
        "bits": state.code_bits,
        **({"factors": True} if state.has_factors else {}),
        "model": state.model,
        **({"side": state.side} if state.side else {}),
        "items": len(state),
        "unsealed": len(state) - n_in_files,
        "removed": sum(part.n_removed for part in state.parts),
        "next_id": state.next_id,
        "change": state.change,
        "bytes": sum(entry["bytes"] for entry in files) + n_bytes,
        "segments": files,
    }


def check(database: Database) -> State:
    """Read everything there is; the first thing that is wrong is a FileFormatError."""
    database.require_integrity()
    state = database.load(verify=True)
    for one, other in combinations(state.parts, 2):
        shared = _shared_id(one, other)
        if shared is not None:
            raise FileFormatError(
                f"{database.folder} is damaged: id {shared} is in part {one.number} and in part "
                f"{other.number}"
            )
    ids = [int(part.segment.ids[-1]) for part in state.parts]
    if ids and max(ids) >= state.next_id:
        raise FileFormatError(
            f"{database.folder} is damaged: its next id would be {state.next_id}, it has {max(ids)}"
        )
    return state


def _shared_id(one: Part, other: Part) -> int | None:
    """An id that both parts have, looked for where their ids overlap."""
    small, large = sorted((one, other), key=lambda part: len(part.segment))
    low, high = (int(large.segment.ids[row]) for row in (0, -1))
    start, stop = small.segment.n_until(low - 1), small.segment.n_until(high)
    for at in range(start, stop, _STEP):
        _, ids = small.rows_between(at, min(at + _STEP, stop))
        is_there = large.rows_of(ids) >= 0
        if is_there.any():
            return int(ids[is_there][0])
    return None
