"""Collection: codes by id in a folder, changed by one process and searched by many.

A small change is committed to SQLite. When enough codes have gathered there, or many come at once,
they are merged with sealed segments of about their size and written as a new segment file; one
commit then names the new file and drops what went into it. So n items lie in O(log n) files, and
a change is on the disk as a whole or not at all.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankbits.errors import InputError
from rankbits.index import _changes, _inputs
from rankbits.index._hamming import HammingIndex
from rankbits.index._holding import Codes
from rankbits.index._reading import Reading
from rankbits.index._state import State
from rankbits.index._store import Store


class Collection(Reading):
    """Codes on disk, by id, that change while they are searched.

    One process writes, any number of others read; each sees the collection as it was at one
    moment. When a change returns, it is on the disk: a kill or a power cut after it cannot undo
    it, and one during it leaves all of it or nothing. A damaged file is refused, not served.

    Make one with `create` or `open`, and close it, or use it in a `with` block. Threads may share
    an object; processes may not: open again after a fork.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Collection.create(folder.name, n_bits=8) as collection:
    ...     collection.add(np.array([[0b00000000], [0b00000011]], np.uint8))
    ...     collection.upsert(np.array([[0b11110000]], np.uint8), ids=[1])
    array([0, 1])
    >>> with Collection.open(folder.name) as collection:
    ...     distances, ids = collection.search(np.array([[0b11110001]], np.uint8), k=2)
    >>> distances.tolist(), ids.tolist()
    ([[1, 5]], [[1, 0]])
    >>> folder.cleanup()
    """

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        n_bits: int,
        **options: Any,
    ) -> "Collection":
        """Make an empty one, open to write, in a new or empty folder; options as in `open`."""
        first = State(HammingIndex(n_bits, **options).n_bits, change=1)
        store = Store.create(Path(folder))
        try:
            store.commit(None, first)
        except BaseException:
            store.close()
            raise
        return cls(store, is_writable=True, verify=True, **options)

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        writable: bool = False,
        *,
        verify: bool = True,
        **options: Any,
    ) -> "Collection":
        """Open a collection.

        Parameters
        ----------
        folder : where it lies
        writable : whether to change it; one writer at a time, readers are never kept out
        verify : whether to compare sealed segments with their checksums when they are opened
            This reads every file once. Without it, opening is immediate, and damage inside of a
            segment goes unnoticed until `check`.
        options : kind, n_threads and others of searches, as in `HammingIndex`
        """
        HammingIndex(1, **options)  # refuses what it does not know
        store = Store.open(Path(folder), is_writer=bool(writable))
        return cls(store, is_writable=bool(writable), verify=bool(verify), **options)

    def add(self, codes: Codes, ids: Any = None) -> np.ndarray:
        """Add codes under new ids; without ids they get those that follow the largest so far.

        Returns their ids. An id that is there already is an error; see `upsert`.
        """
        with self._lock:
            state = self._to_change()
            found = _inputs.codes_of("codes", codes, state.n_bits)
            if ids is None:
                wanted = _changes.fresh_ids(state, len(found))
            else:
                wanted = _inputs.ids_of(ids, len(found))
                there = state.has(wanted)
                if there.any():
                    raise InputError(
                        f"ids must be new, {int(wanted[there][0])} is there already; call "
                        "upsert() to replace codes"
                    )
            self._commit(_changes.grown(self._store, state, found, wanted))
        return wanted

    def upsert(self, codes: Codes, ids: Any) -> None:
        """Add codes, replacing those that are there under the same id, in one step."""
        with self._lock:
            state = self._to_change()
            found = _inputs.codes_of("codes", codes, state.n_bits)
            wanted = _inputs.ids_of(ids, len(found))
            left = _changes.thinned(self._store, state.without(wanted[state.has(wanted)]))
            self._commit(_changes.grown(self._store, left, found, wanted))

    def remove(self, ids: Any) -> None:
        """Remove items; an id that is not there is an error, and then nothing is removed."""
        with self._lock:
            state = self._to_change()
            gone = _inputs.ids_of(ids)
            there = state.has(gone)
            if not there.all():
                raise InputError(f"ids must be in the collection, {int(gone[~there][0])} is not")
            self._commit(_changes.thinned(self._store, state.without(gone)))

    def seal(self) -> None:
        """Write codes that are not yet sealed as a segment file, however few."""
        with self._lock:
            state = self._to_change()
            if state.pending:
                self._commit(_changes.merged(self._store, state, [], takes_pending=True))

    def compact(self) -> None:
        """Bring all items into one segment file and forget removed ones for good.

        Takes little memory, and for a while the space of the collection a second time.
        """
        with self._lock:
            self._commit(_changes.compacted(self._store, self._to_change()))

    def _to_change(self) -> State:
        if not self._is_writable:
            raise InputError(
                f"writable must be True to change {self.folder}; open it with writable=True"
            )
        return self._current()

    def _commit(self, new: State) -> None:
        if new is self._state:
            return
        new = replace(new, change=new.change + 1)
        self._is_sure = False
        self._store.commit(self._state, new)
        self._state, self._is_sure = new, True
