"""Codes by id, as they come and go: a list of parts, each a segment with marks of what was removed.

What is added becomes a part. Small neighbours are merged, so that n items lie in O(log n) parts.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.codes import MAX_BITS, BinaryCodes
from rankbits.errors import InputError
from rankbits.index import _inputs
from rankbits.index._part import Part
from rankbits.index._segment import Ids, Segment, merged

_LARGE = 1 << 25  # items: parts of this size are not merged any further
Codes = BinaryCodes | np.ndarray


class Holding:
    """What an index holds, and the changes of it."""

    def __init__(self, n_bits: int) -> None:
        self.n_bits = _check.whole("n_bits", n_bits, 1, MAX_BITS)
        self._parts: list[Part] = []
        self._next_id = 0

    def __len__(self) -> int:
        return sum(part.n_alive for part in self._parts)

    def __contains__(self, item: object) -> bool:
        if not isinstance(item, int | np.integer) or not 0 <= item <= _inputs.MAX_ID:
            return False
        return bool(self._has(np.array([item], np.int64))[0])

    @property
    def ids(self) -> np.ndarray:
        """Ids of all items, ascending."""
        parts = [part.alive_ids() for part in self._parts]
        return np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)

    @property
    def n_bytes(self) -> int:
        """Memory, or mapped file, of codes, ids and whatever a kind keeps beside them."""
        return sum(part.n_bytes for part in self._parts)

    def add(self, codes: Codes, ids: Any = None) -> np.ndarray:
        """Add codes under new ids; without ids they get those that follow the largest so far.

        Returns their ids. An id that is there already is an error; see `upsert`.
        """
        found = _inputs.codes_of("codes", codes, self.n_bits)
        wanted = self._fresh_ids(len(found)) if ids is None else _inputs.ids_of(ids, len(found))
        if isinstance(wanted, np.ndarray):
            there = self._has(wanted)
            if there.any():
                raise InputError(
                    f"ids must be new, {int(wanted[there][0])} is there already; call upsert() to "
                    "replace codes"
                )
        self._append(found, wanted)
        return np.array(wanted, np.int64)

    def upsert(self, codes: Codes, ids: Any) -> None:
        """Add codes, replacing those that are there under the same id."""
        found = _inputs.codes_of("codes", codes, self.n_bits)
        wanted = _inputs.ids_of(ids, len(found))
        self._drop(wanted[self._has(wanted)])
        self._append(found, wanted)

    def remove(self, ids: Any) -> None:
        """Remove items; an id that is not there is an error, and then nothing is removed."""
        gone = _inputs.ids_of(ids)
        there = self._has(gone)
        if not there.all():
            raise InputError(f"ids must be in the index, {int(gone[~there][0])} is not")
        self._drop(gone)

    def compact(self) -> None:
        """Bring all items into one part and forget removed ones for good."""
        if len(self._parts) > 1 or any(part.n_alive < len(part.segment) for part in self._parts):
            self._parts = self._merge(self._parts)

    def codes(self, ids: Any = None) -> BinaryCodes:
        """The codes of some items, in the order of ids; of all, in ascending order of id."""
        wanted = self.ids if ids is None else _inputs.ids_of(ids, may_repeat=True)
        packed = np.zeros((len(wanted), -(-self.n_bits // 8)), np.uint8)
        is_found = np.zeros(len(wanted), bool)
        for part in self._parts:
            rows = part.rows_of(wanted)
            packed[rows >= 0] = part.segment.codes(rows[rows >= 0]).packed
            is_found |= rows >= 0
        if not is_found.all():
            raise InputError(f"ids must be in the index, {int(wanted[~is_found][0])} is not")
        return BinaryCodes(packed, self.n_bits)

    def _fresh_ids(self, n: int) -> range:
        if self._next_id + n > _inputs.MAX_ID + 1:
            raise InputError(f"ids must be given, none are left above {self._next_id - 1}")
        return range(self._next_id, self._next_id + n)

    def _has(self, ids: np.ndarray) -> np.ndarray:
        there = np.zeros(len(ids), bool)
        for part in self._parts:
            there |= part.rows_of(ids) >= 0
        return there

    def _drop(self, ids: np.ndarray) -> None:
        for part in self._parts:
            rows = part.rows_of(ids)
            if (rows >= 0).any():
                part.remove(rows[rows >= 0])
        self._parts = [part for part in self._parts if part.n_alive]

    def _append(self, codes: BinaryCodes, ids: Ids) -> None:
        if len(codes) == 0:
            return
        self._next_id = max(
            self._next_id, int(max(ids[-1], ids[0]) if isinstance(ids, range) else ids.max()) + 1
        )
        self._parts.append(Part(Segment.of(codes, ids)))
        while len(self._parts) > 1 and self._is_worth_merging(*self._parts[-2:]):
            self._parts[-2:] = self._merge(self._parts[-2:])

    @staticmethod
    def _is_worth_merging(before: Part, last: Part) -> bool:
        small = len(before.segment) < 2 * len(last.segment)
        return small and not before.is_mapped and len(before.segment) < _LARGE

    @staticmethod
    def _merge(parts: Iterable[Part]) -> list[Part]:
        alive = [part for part in parts if part.n_alive]
        if not alive:
            return []
        return [Part(merged([p.segment for p in alive], [p.alive_rows() for p in alive]))]
