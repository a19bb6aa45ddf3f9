"""HammingIndex: codes by id in memory, or mapped from a folder, searched exactly."""

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankbits import _check
from rankbits.codes import MAX_BITS
from rankbits.index.engines.searcher import Searcher
from rankbits.index.searchable import Change, Result, Searchable
from rankbits.index.store.changes import InMemory
from rankbits.index.store.segment import FACTOR_BITS
from rankbits.index.store.state import State


class HammingIndex(Searchable):
    """Codes by id, searched by Hamming distance.

    Parameters
    ----------
    n_bits : int, 1 to 4096
        Code length.
    kind : {"auto", "scan", "mih", "ivf"}, default="auto"
        How to search. All but "ivf" are exact and return the same.
    n_threads : int or None, default=None
        Number of threads of a search. None takes the number in RANKBITS_NUM_THREADS or, without
        it, as many as the process may use.
    factors : bool, default=False
        Whether items have two bytes of factors beside their codes, which `search_real` can correct
        scores by. Codes may then have 4080 bits.
    options : keyword arguments
        Options of the kind: "mih" and "auto" take `copies`, "ivf" takes `n_lists` and `n_probes`.
        `docs/search.md` explains them.

    >>> import numpy as np
    >>> index = HammingIndex(8, kind="scan")
    >>> index.add(np.array([[0b00000000], [0b00000011], [0b11110000]], np.uint8))
    array([0, 1, 2])
    >>> distances, ids = index.search(np.array([[0b00000001]], np.uint8), k=2)
    >>> distances.tolist(), ids.tolist()
    ([[1, 1]], [[0, 1]])
    """

    def __init__(
        self,
        n_bits: int,
        kind: str = "auto",
        *,
        n_threads: int | None = None,
        factors: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(Searcher(kind, n_threads, options))
        self._state = empty_state(n_bits, factors)
        self._lock = threading.Lock()  # changes of several threads follow one another

    @classmethod
    def of_state(cls, state: State, searcher: Searcher) -> "HammingIndex":
        """An index of a state; for the modules of this room.

        Parameters
        ----------
        state : State
            The codes and ids that the index holds.
        searcher : Searcher
            The kind and the options by which it searches.
        """
        index = cls(state.n_bits)
        index._state, index._searcher = state, searcher
        return index

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: the codes, and how to search them; engines are built again."""
        return {"state": in_memory(self._state), "searcher": self._searcher.like(None, None, {})}

    def __setstate__(self, content: dict[str, Any]) -> None:
        self._state, self._searcher = content["state"], content["searcher"]
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"HammingIndex(n={len(self)}, n_bits={self.n_bits}, kind={self.kind!r})"

    def _current(self) -> State:
        return self._state

    def _apply(self, change: Change[Result], *sources: Any) -> Result:
        with self._lock:
            with self._moment(*sources) as state:
                new, result = change(state, InMemory())
            self._state = new
        return result

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the index as a collection; see `Collection` for one that changes on disk.

        A collection that is there is replaced in one step: a kill leaves the old one or the new
        one, and who reads it sees one of the two. A folder that holds anything else is refused.
        """
        from rankbits.index import disk  # SQLite is imported only by those who save or load

        disk.write_collection(Path(folder), self._state, may_replace=True).close()

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], mmap: bool = True, kind: str = "auto", **options: Any
    ) -> "HammingIndex":
        """The collection in a folder as it stands now.

        Every byte is compared with its checksum first. Changes of the index stay in memory.

        Parameters
        ----------
        folder : str or path-like
            Folder that `save` or a `Collection` wrote.
        mmap : bool, default=True
            Whether codes are mapped instead of read into memory. If a mapped file is cut or
            written to by others, every later call is an error; codes in memory do not change.
        kind, options : str and keyword arguments
            How the index searches, as in the class; `n_threads` is one of the options.
        """
        from rankbits.index import disk

        searcher = Searcher(kind, options.pop("n_threads", None), options)
        state = disk.read_collection(Path(folder))
        return cls.of_state(state if mmap else in_memory(state), searcher)


def empty_state(n_bits: Any, factors: Any) -> State:
    """A state without items, of an index or a collection that is new."""
    if not _check.flag("factors", factors):
        return State(_check.whole("n_bits", n_bits, 1, MAX_BITS))
    n_code_bits = _check.whole("n_bits", n_bits, 1, MAX_BITS - FACTOR_BITS)
    return State(n_code_bits + FACTOR_BITS, has_factors=True)


def in_memory(state: State) -> State:
    """A state that needs no files."""
    parts = tuple(replace(part, segment=part.segment.in_memory()) for part in state.parts)
    return replace(state, parts=parts)
