"""What an index holds at one moment. States never change: a change makes a new one out of the old.

Whatever two states share is the same object, so their difference is what has to be written.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.index.store.part import Part
from rankbits.index.store.segment import FACTOR_BITS, FACTOR_BYTES, Segment


@dataclass(frozen=True, eq=False)
class State:
    """All items at one moment.

    Attributes
    ----------
    n_bits : bits in a code as it is stored, those of its factors included
    next_id : one more than the largest id there ever was
    next_part : one more than the largest part number there ever was
    change : how many changes led here
    parts : the oldest first
    model : fingerprint of the model that made the codes, None if it is unknown
    has_factors : whether two bytes of factors stand before each code
    side : "items" if the model encodes queries by another map, None if codes serve as both
    """

    n_bits: int
    next_id: int = 0
    next_part: int = 1
    change: int = 0
    parts: tuple[Part, ...] = ()
    model: str | None = None
    has_factors: bool = False
    side: str | None = None

    def __len__(self) -> int:
        return self._n_items

    @cached_property
    def _n_items(self) -> int:
        return sum(part.n_alive for part in self.parts)

    @property
    def code_bits(self) -> int:
        """Bits in a code without its factors."""
        return self.n_bits - FACTOR_BITS if self.has_factors else self.n_bits

    @property
    def width(self) -> int:
        """Bytes in a code as it is stored."""
        return -(-self.n_bits // 8)

    @property
    def ids(self) -> np.ndarray:
        """Ids of all items, ascending."""
        ids = [part.alive_ids() for part in self.parts]
        return np.sort(np.concatenate(ids)) if ids else np.empty(0, np.int64)

    @property
    def is_damaged(self) -> bool:
        """Whether a file of it was cut or written to, so that only reading it anew can help."""
        return any(part.segment.is_damaged for part in self.parts)

    def require_same_file(self) -> None:
        """Raise if a file of it is no longer what it was."""
        for part in self.parts:
            part.segment.require_same_file()

    def code_segment(self, part: Part) -> Segment:
        """The codes of a part without factors."""
        return part.segment.without_factors if self.has_factors else part.segment

    def has(self, ids: np.ndarray) -> np.ndarray:
        """Which ids are there."""
        is_there = np.zeros(len(ids), bool)
        for part in self.parts:
            is_there |= part.rows_of(ids) >= 0
        return is_there

    def require(self, ids: np.ndarray) -> None:
        """Raise unless all ids are there."""
        is_there = self.has(ids)
        if not is_there.all():
            raise InputError(f"ids must be of items that exist, {int(ids[~is_there][0])} is not")

    def codes(self, ids: np.ndarray) -> BinaryCodes:
        """The codes of items, in the order of ids."""
        n_before = FACTOR_BYTES if self.has_factors else 0
        packed = self._stored(ids)[:, n_before:]
        return BinaryCodes(packed, self.code_bits, self.model, self.side)

    def factors(self, ids: np.ndarray) -> np.ndarray:
        """The two bytes of factors of items, in the order of ids."""
        return self._stored(ids)[:, :FACTOR_BYTES]

    def _stored(self, ids: np.ndarray) -> np.ndarray:
        """Packed codes of items as they are stored, in the order of ids."""
        packed = np.zeros((len(ids), self.width), np.uint8)
        is_there = np.zeros(len(ids), bool)
        for part in self.parts:
            rows = part.rows_of(ids)
            is_here = rows >= 0
            packed[is_here] = part.segment.codes(rows[is_here]).packed
            is_there |= is_here
        if not is_there.all():
            raise InputError(f"ids must be of items that exist, {int(ids[~is_there][0])} is not")
        return packed

    def without(self, ids: np.ndarray) -> "State":
        """The same without items that are there; a part that is left empty is dropped."""
        if len(ids) == 0:
            return self
        parts = []
        for part in self.parts:
            rows = part.rows_of(ids)
            is_here = rows >= 0
            left = part.without(rows[is_here]) if is_here.any() else part
            parts += [left] if left.n_alive else []
        return replace(self, parts=tuple(parts))
