"""HammingIndex: a collection of codes that changes and is searched exactly.

Codes are added in parts; small neighbours are merged, so that n items lie in O(log n) parts. A
search asks every part and merges the answers in order of (distance, id), so that neither the kind
of index nor how the items came into it can be seen in what is found.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rankbits import _check, _native
from rankbits.codes import MAX_BITS, BinaryCodes
from rankbits.errors import InputError
from rankbits.index import _inputs
from rankbits.index._engines import KINDS, engine_of
from rankbits.index._ivf import DEFAULT_PROBES
from rankbits.index._part import Engine, Part, Wanted
from rankbits.index._planner import Auto
from rankbits.index._rescore import Candidates, Rescore, pool_size, rescored
from rankbits.index._results import Ragged, combined, nothing, table
from rankbits.index._segment import Ids, Segment, merged

_LARGE = 1 << 25  # items: parts of this size are not merged any further
Codes = BinaryCodes | np.ndarray


class HammingIndex:
    """Codes by id, searched by Hamming distance.

    Parameters
    ----------
    n_bits : int, 1 to 4096
    kind : "auto", "scan", "mih" or "ivf"
        How to search. All but "ivf" are exact and find the same.
    n_threads : int or None
        Threads of a search; None takes RANKBITS_NUM_THREADS, or all there are.
    n_lists, n_probes : int
        Of kind "ivf": lists a part is cut into, None for the root of its size, and how many of
        them a query looks into.

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
        n_lists: int | None = None,
        n_probes: int = DEFAULT_PROBES,
    ) -> None:
        self.n_bits = _check.whole("n_bits", n_bits, 1, MAX_BITS)
        self.kind = _check.choice("kind", kind, KINDS)
        if n_threads is not None:
            _check.whole("n_threads", n_threads, 1, 1024)
        self.n_threads = n_threads
        self.n_lists = None if n_lists is None else _check.whole("n_lists", n_lists, 1, 1 << 20)
        self.n_probes = _check.whole("n_probes", n_probes, 1)
        self._parts: list[Part] = []
        self._next_id = 0

    def __len__(self) -> int:
        return sum(part.n_alive for part in self._parts)

    def __repr__(self) -> str:
        return f"HammingIndex(n={len(self)}, n_bits={self.n_bits}, kind={self.kind!r})"

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

    # Changes

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

    # Searches

    def search(
        self,
        codes: Codes,
        k: int,
        ties: str = "id",
        *,
        allowed: Any = None,
        rescore: Rescore | None = None,
        pool: int | None = None,
        n_probes: int | None = None,
        n_threads: int | None = None,
    ) -> Any:
        """The k nearest items of each query, in order of (distance, id).

        Parameters
        ----------
        codes : the queries, BinaryCodes or packed uint8
        k : int, 1 or more
        ties : "id" or "complete"
            Which items that are as far as the k-th to return: those of lowest id, or all.
        allowed : ids that may be found, or a mask with an entry for each of `index.ids`
        n_probes : of kind "ivf", instead of the index's own
        rescore : `weighted_bits`, `asymmetric` or `vectors`: a finer score for the nearest items
        pool : int or None, how many nearest items to score; None takes max(10 * k, 100)
            With `ties="complete"` also all that are as far as the last of them.

        Returns
        -------
        distances, ids : int32 and int64 arrays (queries, k) for `ties="id"`
            Where there are fewer than k items, places are filled with 2147483647 and -1.
        Ragged : for `ties="complete"`
        scores, ids : float32 and int64 arrays (queries, k) for `rescore`, by (score, id)
            Where there are fewer than k items, places are filled with infinity and -1.
        """
        is_complete = _check.choice("ties", ties, ("id", "complete")) == "complete"
        k = _inputs.how_many(k)
        queries = _inputs.codes_of("codes", codes, self.n_bits)
        n_wanted = pool_size(rescore, pool, k, len(self))
        if rescore is not None:
            rescore.require(len(queries), self.n_bits)
        wanted = Wanted(
            n_wanted,
            self.n_bits,
            is_complete,
            self._threads(n_threads),
            self.n_probes if n_probes is None else _check.whole("n_probes", n_probes, 1),
        )
        found = self._search(queries, wanted, allowed)
        if rescore is not None:
            return rescored(Candidates(queries, found, self.codes), rescore, k)
        return found if is_complete else table(found, k)

    def within(
        self, codes: Codes, radius: int, *, allowed: Any = None, n_threads: int | None = None
    ) -> Ragged:
        """Every item at distance `radius` or less of each query, in order of (distance, id)."""
        reach = min(_check.whole("radius", radius, 0), self.n_bits)
        wanted = Wanted(0, reach, True, self._threads(n_threads), self.n_probes)
        return self._search(codes, wanted, allowed)

    def _search(self, codes: Codes, wanted: Wanted, allowed: Any) -> Ragged:
        queries = _inputs.codes_of("codes", codes, self.n_bits).packed
        if len(queries) == 0:
            return nothing(0)
        parts = [part for part in self._parts if part.n_alive]
        chosen = _inputs.chosen(allowed, [part.alive_ids for part in parts], len(self))
        answers = [
            part.search(self._engine(part, wanted), queries, mine, wanted)
            for part, mine in zip(parts, chosen, strict=True)
        ]
        return combined(answers, len(queries), wanted.k or None, is_complete=wanted.is_complete)

    def tune(self, codes: Codes, k: int, *, n_threads: int | None = None) -> None:
        """Build now what later searches would build, and let kind "auto" measure on these queries.

        Without it, "auto" scans until the time of its scans pays for trying something else.
        """
        queries = _inputs.codes_of("codes", codes, self.n_bits).packed
        wanted = Wanted(_inputs.how_many(k), self.n_bits, False, self._threads(n_threads))
        for part in self._parts if len(queries) else ():
            engine = self._engine(part, wanted)
            if isinstance(engine, Auto):
                engine.tune(queries, part.allowed(None), wanted)

    def _engine(self, part: Part, wanted: Wanted) -> Engine:
        return engine_of(self.kind, part, wanted.n_threads, self.n_lists)

    def _threads(self, wanted: int | None) -> int:
        return _native.threads(self.n_threads if wanted is None else wanted)

    # Parts

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

    # Files

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the index as a collection; see `Collection` for one that changes on disk.

        A collection that is there is replaced in one step: a kill leaves the old one or the new
        one, and who reads it sees one of the two. A folder that holds anything else is refused.
        """
        from rankbits.index._copies import write_collection  # which stands above this module
        from rankbits.index._merge import Source

        sources = []
        for part in self._parts:
            alive = part.allowed(None)
            sources.append(Source(part.segment, ~alive if len(alive) else None))
        write_collection(Path(folder), self.n_bits, sources, self._next_id)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        mmap: bool = True,
        **options: Any,
    ) -> "HammingIndex":
        """The collection in a folder as it stands now; codes are mapped, or read into memory.

        Every byte is compared with its checksum first. Changes of the index stay in memory.
        Options are those of the class: kind, n_threads and so on.
        """
        from rankbits.index._collection import Collection  # which stands above this module

        with Collection.open(folder, **options) as collection:
            return collection.index(mmap=mmap)

    @classmethod
    def _of_parts(
        cls, n_bits: int, parts: list[Part], next_id: int, **options: Any
    ) -> "HammingIndex":
        index = cls(n_bits, **options)
        index._parts, index._next_id = parts, next_id
        return index
