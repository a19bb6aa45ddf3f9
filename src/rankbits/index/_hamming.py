"""HammingIndex: codes by id, searched exactly.

A search asks every part and merges the answers in order of (distance, id), so that neither the kind
of index nor how the items came into it can be seen in what is found.
"""

import os
from pathlib import Path
from typing import Any

from rankbits import _check, _native
from rankbits.index import _inputs
from rankbits.index._engines import KINDS, engine_of
from rankbits.index._holding import Codes, Holding
from rankbits.index._ivf import DEFAULT_PROBES
from rankbits.index._part import Engine, Part, Wanted
from rankbits.index._planner import Auto
from rankbits.index._rescore import Candidates, Rescore, pool_size, rescored
from rankbits.index._results import Ragged, combined, nothing, table


class HammingIndex(Holding):
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
        n_lists: int | None = None,
        n_probes: int = DEFAULT_PROBES,
    ) -> None:
        super().__init__(n_bits)
        self.kind = _check.choice("kind", kind, KINDS)
        if n_threads is not None:
            _check.whole("n_threads", n_threads, 1, 1024)
        self.n_threads = n_threads
        self.n_lists = None if n_lists is None else _check.whole("n_lists", n_lists, 1, 1 << 20)
        self.n_probes = _check.whole("n_probes", n_probes, 1)

    def __repr__(self) -> str:
        return f"HammingIndex(n={len(self)}, n_bits={self.n_bits}, kind={self.kind!r})"

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
            return rescored(Candidates(queries, found, self.codes, wanted.n_threads), rescore, k)
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
