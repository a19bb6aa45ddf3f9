"""Whole collections written in one step: an index saved, a state copied to another folder.

Segment files come first; one commit then makes them a collection. Until then a folder holds the
old collection, or one that was never finished and can be written again.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import IO

from rankbits._files import sync_folder
from rankbits.index import _folder
from rankbits.index._merge import Source
from rankbits.index._segment_file import open_segment
from rankbits.index._state import State
from rankbits.index._store import Store


def write_collection(folder: Path, n_bits: int, sources: list[Source], next_id: int) -> None:
    """Make sources the content of a collection, new or not."""
    store = Store.create(folder, may_replace=True)
    try:
        change, number = store.counters()
        made = store.write(n_bits, number, sources)
        next_segment = made.number + 1 if made else number
        sealed = (made,) if made else ()
        store.commit(None, State(n_bits, next_id, next_segment, change + 1, sealed))
    finally:
        store.close()


def copy_state(state: State, source: Path, target: Path, *, is_linked: bool) -> None:
    """Make a collection of a state; a file that is gone by now is a FileFormatError."""
    store = Store.create(target)
    try:
        for sealed in state.sealed:
            old = _folder.segment_path(source, sealed.number)
            new = _folder.segment_path(target, sealed.number)
            new.unlink(missing_ok=True)  # of an attempt that was cut
            with open_segment(old) as file, _folder.failures(target, "written"):
                _copy(file, new, is_linked=is_linked)
        with _folder.failures(target, "written"):
            sync_folder(_folder.segment_path(target, 0).parent)
        store.commit(None, state)
    finally:
        store.close()


def _copy(old: IO[bytes], new: Path, *, is_linked: bool) -> None:
    if is_linked:
        with suppress(OSError):  # another file system, one without links, or just deleted
            os.link(old.name, new)
            return
    with open(new, "wb") as target:
        shutil.copyfileobj(old, target, 1 << 20)
        target.flush()
        os.fsync(target.fileno())
