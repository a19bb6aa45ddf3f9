"""A part of an index: a segment, which of its items are still there, and an engine to search it.

Engines are made at the first search that wants them, and live as long as the part.
"""

from typing import NamedTuple, Protocol

import numpy as np

from rankbits import _native
from rankbits.index._results import Ragged
from rankbits.index._segment import Segment, all_words, mask_of, words_of

_ALL = np.empty(0, np.uint64)
_WORTH_A_THREAD = 1 << 22  # bytes compared, some 50 µs; a thread that stays need only wake
QUERIES_A_THREAD = 4  # of engines that look at few items


class Wanted(NamedTuple):
    """How items are wanted: the k nearest (0: all) within a radius, with ties of the k-th or not.

    `n_probes` is for engines that may miss items: how many lists they look into.
    """

    k: int
    radius: int
    is_complete: bool
    n_threads: int
    n_probes: int = 0


class Engine(Protocol):
    """Searches one segment; `allowed` has a bit an item, and no words if all may be found."""

    @property
    def n_bytes(self) -> int:
        """Memory beyond the segment's."""
        ...

    def search(self, queries: np.ndarray, allowed: np.ndarray, wanted: Wanted) -> Ragged:
        """Rows in place of ids, in order of (distance, row)."""
        ...


class Scan:
    """Goes over all codes."""

    n_bytes = 0

    def __init__(self, segment: Segment) -> None:
        self._segment = segment

    def search(self, queries: np.ndarray, allowed: np.ndarray, wanted: Wanted) -> Ragged:
        """Exact, whatever is wanted."""
        n_compared = len(queries) * self._segment.planes.nbytes
        found = _native.scan(
            self._segment.planes,
            len(self._segment),
            self._segment.n_bits,
            allowed,
            queries,
            wanted.k,
            wanted.radius,
            wanted.is_complete,
            n_threads=min(wanted.n_threads, 1 + n_compared // _WORTH_A_THREAD),
        )
        return Ragged(*found)


class Part:
    """A segment and what was removed from it since."""

    def __init__(self, segment: Segment, *, is_mapped: bool = False) -> None:
        self.segment = segment
        self.is_mapped = is_mapped
        self.n_alive = len(segment)
        self._alive: np.ndarray | None = None  # words; None while all are there
        self.engines: dict[str, Engine] = {}

    @property
    def n_bytes(self) -> int:
        """Memory or mapped file of codes, ids, marks and engines."""
        marks = 0 if self._alive is None else self._alive.nbytes
        return self.segment.n_bytes + marks + sum(e.n_bytes for e in self.engines.values())

    def alive_rows(self) -> np.ndarray | None:
        """Rows that are still there; None stands for all."""
        if self._alive is None:
            return None
        return np.flatnonzero(mask_of(self._alive, len(self.segment)))

    def alive_ids(self) -> np.ndarray:
        """Ids that are still there, ascending."""
        rows = self.alive_rows()
        return self.segment.id_array() if rows is None else self.segment.ids_of(rows)

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Rows of ids that are still there, -1 for others."""
        rows = self.segment.rows_of(ids)
        if self._alive is None:
            return rows
        bits = self._alive[rows // 64] >> (rows % 64).astype(np.uint64) & np.uint64(1)
        return np.where((rows >= 0) & (bits == 1), rows, -1)

    def remove(self, rows: np.ndarray) -> None:
        """Mark rows, each of them once and still there, as removed."""
        if self._alive is None:
            self._alive = all_words(len(self.segment))
        np.bitwise_and.at(self._alive, rows // 64, ~(np.uint64(1) << (rows % 64).astype(np.uint64)))
        self.n_alive -= len(rows)

    def allowed(self, chosen: np.ndarray | None) -> np.ndarray:
        """Words for an engine: what is still there and among the chosen ids or, if bool, marked.

        A mask has an entry for each item that is still there.
        """
        if chosen is None:
            return _ALL if self._alive is None else self._alive
        if chosen.dtype == bool:
            rows = self.alive_rows()
            if rows is None:
                return words_of(chosen)
            mask = np.zeros(len(self.segment), bool)
            mask[rows[chosen]] = True
            return words_of(mask)
        rows = self.rows_of(chosen)
        mask = np.zeros(len(self.segment), bool)
        mask[rows[rows >= 0]] = True
        return words_of(mask)

    def search(
        self, engine: Engine, queries: np.ndarray, chosen: np.ndarray | None, wanted: Wanted
    ) -> Ragged:
        """What one engine finds here, with ids."""
        found = engine.search(queries, self.allowed(chosen), wanted)
        return found._replace(ids=self.segment.ids_of(found.ids))
