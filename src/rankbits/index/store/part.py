"""A part of a state: a segment, and which of its items are still there.

Parts never change. Removing items gives another part with the same segment, so whatever was made of
the segment (an engine, a file) still serves.
"""

from dataclasses import dataclass, replace

import numpy as np

from rankbits.index.store.segment import GROUP, Segment
from rankbits.index.store.words import all_words, contains, mask_of, without_rows, words_of

_ALL = np.empty(0, np.uint64)


@dataclass(frozen=True, eq=False)
class Part:
    """A segment and what is left of it.

    Attributes
    ----------
    number : names the part; no other part of the same store ever has it
    segment : the codes and ids
    n_alive : how many of its items are still there
    alive : the rows that are still there as words, or None for all
    """

    number: int
    segment: Segment
    n_alive: int
    alive: np.ndarray | None = None

    @classmethod
    def of(cls, number: int, segment: Segment) -> "Part":
        """A part of which nothing was removed."""
        return cls(number, segment, len(segment))

    @property
    def n_removed(self) -> int:
        """Items of the segment that were removed."""
        return len(self.segment) - self.n_alive

    @property
    def n_bytes(self) -> int:
        """Memory, or mapped file, of codes, ids and marks."""
        return self.segment.n_bytes + (0 if self.alive is None else self.alive.nbytes)

    def alive_rows(self) -> np.ndarray | None:
        """Rows that are still there; None stands for all."""
        if self.alive is None:
            return None
        return np.flatnonzero(mask_of(self.alive, len(self.segment)))

    def alive_ids(self) -> np.ndarray:
        """Ids that are still there, ascending."""
        rows = self.alive_rows()
        return self.segment.id_array() if rows is None else self.segment.ids_of(rows)

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Rows of ids that are still there, -1 for others."""
        rows = self.segment.rows_of(ids)
        if self.alive is None:
            return rows
        return np.where((rows >= 0) & contains(self.alive, rows), rows, -1)

    def without(self, rows: np.ndarray) -> "Part":
        """The same without some rows, each named once and still there."""
        alive = all_words(len(self.segment)) if self.alive is None else self.alive
        return replace(self, alive=without_rows(alive, rows), n_alive=self.n_alive - len(rows))

    def allowed(self, selection: np.ndarray | None) -> np.ndarray:
        """Words for an engine, no words if all rows may be returned.

        A selection is an array of ids, or a mask with an entry for each item that is still there.
        """
        if selection is None:
            return _ALL if self.alive is None else self.alive
        mask = np.zeros(len(self.segment), bool)
        if selection.dtype == bool:
            rows = self.alive_rows()
            mask[slice(None) if rows is None else rows] = selection
        else:
            rows = self.rows_of(selection)
            mask[rows[rows >= 0]] = True
        return words_of(mask)

    def rows_between(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Packed codes and ids of the rows from start up to stop that are still there.

        They are fit to be written elsewhere: bytes of a file were compared with their checksums.
        """
        packed, ids = self.segment.rows_between(start, stop)
        if self.alive is None:
            return packed, ids
        is_alive = self._is_alive(start, stop)
        return packed[is_alive], np.asarray(ids[is_alive])

    def packed_between(self, start: int, stop: int) -> np.ndarray:
        """Packed codes of the rows from start up to stop that are still there."""
        packed = self.segment.packed_between(start, stop)
        return packed if self.alive is None else packed[self._is_alive(start, stop)]

    def _is_alive(self, start: int, stop: int) -> np.ndarray:
        low = start // GROUP
        words = self.alive[low : -(-stop // GROUP)]  # type: ignore[index]
        return mask_of(words, stop - low * GROUP)[start - low * GROUP :]
