"""What an index in memory and a collection on disk have in common: all but where the state is.

A change takes the state and gives the next one; a search takes the state as it stands. So each
search sees one moment, also while another thread changes the index.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from rankbits import _check, _native
from rankbits._mapped import unchanged
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import inputs, real_queries
from rankbits.index.engines.searcher import Searcher
from rankbits.index.rescoring.base import Candidates, Rescore, pool_size, rescored
from rankbits.index.rescoring.bits import asymmetric
from rankbits.index.results import Ragged, table
from rankbits.index.store import changes
from rankbits.index.store.changes import Builder
from rankbits.index.store.state import State
from rankbits.index.tie_counts import tie_counts

Codes = BinaryCodes | np.ndarray
Result = TypeVar("Result")
Change = Callable[[State, Builder], tuple[State, Result]]


class Searchable(ABC):
    """Codes by id, which change and are searched."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    @abstractmethod
    def _current(self) -> State:
        """The state as it stands."""

    @abstractmethod
    def _apply(self, change: Change[Result], *sources: Any) -> Result:
        """Make a change the current state, as a whole or not at all.

        What the change reads, `sources` included, must stay as it is until the change is made.
        """

    @contextmanager
    def _moment(self, *sources: Any) -> Iterator[State]:
        """The state as it stands, for a block in which the files that it reads must not change."""
        state = self._current()
        with unchanged(state, *sources):
            yield state

    # What it holds

    @property
    def n_bits(self) -> int:
        """Bits in a code."""
        return self._current().code_bits

    @property
    def has_factors(self) -> bool:
        """Whether items have two bytes of factors beside their codes."""
        return self._current().has_factors

    @property
    def model(self) -> str | None:
        """Fingerprint of the model that made the codes, None if it is unknown.

        The first codes that bring one decide it; then codes of another model are refused.
        """
        return self._current().model

    @property
    def side(self) -> str | None:
        """What the codes are for: "items" if their model encodes queries by another map, else None.

        Codes with a side that are taken out of an index are refused as queries.
        """
        return self._current().side

    def __len__(self) -> int:
        return len(self._current())

    def __contains__(self, item: object) -> bool:
        if not inputs.is_id(item):
            return False
        with self._moment() as state:
            return bool(state.has(np.array([item], np.int64))[0])

    @property
    def ids(self) -> np.ndarray:
        """Ids of all items, ascending."""
        with self._moment() as state:
            return state.ids

    def codes(self, ids: Any = None) -> BinaryCodes:
        """The codes of some items, in the order of ids; of all, in ascending order of id."""
        with self._moment(ids) as state:
            return state.codes(state.ids if ids is None else inputs.ids_of(ids, may_repeat=True))

    def factors(self, ids: Any = None) -> np.ndarray:
        """The factors of some items, uint8 (n, 2), in the order of ids; of all, ascending."""
        with self._moment(ids) as state:
            if not state.has_factors:
                raise InputError("factors need an index that was made with factors=True")
            return state.factors(state.ids if ids is None else inputs.ids_of(ids, may_repeat=True))

    @property
    def n_bytes(self) -> int:
        """Memory, or mapped files, of codes and ids and of what the kind has built beside them."""
        return self._searcher.n_bytes(self._current())

    # Changes

    def add(self, codes: Codes, ids: Any = None, *, factors: Any = None) -> np.ndarray:
        """Add codes under new ids; without ids they get those that follow the largest so far.

        Returns their ids. An id that exists already is an error; see `upsert`. An index with
        factors needs those of each code, uint8 of shape (n, 2).
        """
        return self._apply(
            lambda state, builder: changes.add(state, codes, ids, builder, factors),
            *(codes, ids, factors),
        )

    def upsert(self, codes: Codes, ids: Any, *, factors: Any = None) -> None:
        """Add codes, replacing those that are there under the same id, in one step."""
        self._apply(
            lambda state, builder: (changes.upsert(state, codes, ids, builder, factors), None),
            *(codes, ids, factors),
        )

    def remove(self, ids: Any) -> None:
        """Remove items; if one of them does not exist, that is an error and nothing is removed."""
        self._apply(lambda state, builder: (changes.remove(state, ids, builder), None), ids)

    def compact(self) -> None:
        """Bring all items into one part and forget removed ones for good."""
        self._apply(lambda state, builder: (changes.compact(state, builder), None))

    # Searches

    @property
    def kind(self) -> str:
        """How it searches."""
        return self._searcher.kind

    @property
    def n_threads(self) -> int | None:
        """Threads of a search, None for as many as there are."""
        return self._searcher.n_threads

    def configure(
        self, kind: str | None = None, *, n_threads: int | None = None, **options: Any
    ) -> None:
        """Search in another way from now on; what is not given stays as it is.

        Parameters
        ----------
        kind : one of `rankbits.index.engines.names()`
        n_threads : threads of a search
        options : options of the kind, such as n_lists and n_probes of "ivf"
        """
        self._searcher.configure(kind, n_threads, options)

    def search(
        self,
        codes: Codes,
        k: int,
        ties: str = "id",
        *,
        allowed: Any = None,
        rescore: Rescore | None = None,
        pool: int | None = None,
        n_threads: int | None = None,
        **options: Any,
    ) -> Any:
        """The k nearest items of each query, in order of (distance, id).

        Parameters
        ----------
        codes : the queries, BinaryCodes or packed uint8
        k : int, 1 or more
            More than there are items is as many as there are.
        ties : "id" or "complete"
            Which items that are as far as the k-th to return: those of lowest id, or all.
        allowed : ids that may be returned, or a mask with an entry for each of `ids`
        rescore : `weighted_bits`, `asymmetric` or `vectors`: a finer score for the nearest items
        pool : int or None, how many nearest items to score; None takes max(10 * k, 100)
            With `ties="complete"` also all that are as far as the last of them. `asymmetric` scores
            all items of an index that has no more than 256 times as many, if no pool is given.
        n_threads : threads of this search
        options : options of the kind for this search, such as n_probes of "ivf"

        Returns
        -------
        distances, ids : int32 and int64 arrays (queries, k) for `ties="id"`
            Where fewer than k items may be returned, places are filled with 2147483647 and -1.
        Ragged : for `ties="complete"`
        scores, ids : float32 and int64 arrays (queries, k) for `rescore`, by (score, id)
            Where fewer than k items may be returned, places are filled with infinity and -1.
        """
        with self._moment(codes, allowed) as state:
            is_complete = _check.choice("ties", ties, ("id", "complete")) == "complete"
            queries = inputs.queries_of(codes, state.code_bits, state.model)
            k = inputs.how_many(k)
            n_scored = pool_size(rescore, pool, k, len(state))
            if rescore is not None:
                rescore.require(len(queries), state.code_bits)
            k, n_nearest = min(k, len(state)), max(1, min(n_scored, len(state)))
            request = self._searcher.request(
                n_nearest, state.code_bits, is_complete, n_threads, options
            )
            if isinstance(rescore, asymmetric) and rescore.can_scan and n_nearest >= len(state):
                scores, ids = real_queries.search(
                    state, rescore.logits, k, request.n_threads, allowed
                )
                return 0.0 - scores, ids
            answer = self._searcher.search(state, queries, request, allowed)
            if rescore is not None:
                candidates = Candidates(queries, answer, state.codes, request.n_threads)
                return rescored(candidates, rescore, k)
            return answer if is_complete else table(answer, k)

    def search_real(
        self,
        weights: Any,
        k: int,
        *,
        allowed: Any = None,
        correction: Any = None,
        n_threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k items with the largest inner product of a query's weights and their codes.

        Codes count as -1 and +1. The result is exact for every kind of index, since every kind
        scans for it: neither buckets of mih nor lists of ivf say which items have large products.

        Parameters
        ----------
        weights : array of shape (queries, n_bits) or (queries, 16 * ceil(n_bits / 4))
            Real-valued queries, such as `hasher.project_queries(X)`: how much each bit matters, and
            its sign. Or 16 numbers for every four bits, the one of their value being added.
        k : int, 1 or more
            More than there are items is as many as there are.
        allowed : ids, or a mask with an entry for each of `ids`, default=None
            The items that may be returned; None for all.
        correction : array of shape (3, 256) or None, default=None
            For an index with factors, such as `hasher.correction()` of `rabitq`: the product of an
            item is multiplied by correction[0, its first byte] and correction[1, its second byte],
            which are 0 or more, and correction[2, its first byte] is added.
        n_threads : int or None, default=None
            Threads of this search; None for those of the index.

        Returns
        -------
        scores, ids : float32 and int64 arrays (queries, k)
            Largest score first, equal ones in order of id. Where fewer than k items may be
            returned, places are filled with minus infinity and -1.
        """
        with self._moment(weights, allowed, correction) as state:
            numbers = real_queries.weights_of(weights, state.code_bits)
            tables = real_queries.correction_of(correction, numbers, has_factors=state.has_factors)
            k = min(inputs.how_many(k), len(state))
            threads = _native.threads(self.n_threads if n_threads is None else n_threads)
            return real_queries.search(state, numbers, k, threads, allowed, tables)

    def within(
        self,
        codes: Codes,
        radius: int,
        *,
        allowed: Any = None,
        n_threads: int | None = None,
        **options: Any,
    ) -> Ragged:
        """Every item at distance `radius` or less of each query, in order of (distance, id)."""
        with self._moment(codes, allowed) as state:
            queries = inputs.queries_of(codes, state.code_bits, state.model)
            reach = min(_check.whole("radius", radius, 0), state.code_bits)
            request = self._searcher.request(0, reach, True, n_threads, options)
            return self._searcher.search(state, queries, request, allowed)

    def tie_counts(
        self, codes: Codes, *, allowed: Any = None, n_threads: int | None = None
    ) -> np.ndarray:
        """How many items lie at each distance of each query, int64 of shape (queries, n_bits + 1).

        Sizes of ties, and of what `within` would return, without the memory of a result.
        """
        with self._moment(codes, allowed) as state:
            queries = inputs.queries_of(codes, state.code_bits, state.model)
            threads = _native.threads(self.n_threads if n_threads is None else n_threads)
            return tie_counts(state, queries, allowed, threads)

    def tune(self, codes: Codes, k: int, *, n_threads: int | None = None) -> None:
        """Build now what later searches would build, and let kind "auto" measure on these queries.

        Without it, "auto" scans until the time of its scans pays for trying something else.
        """
        with self._moment(codes) as state:
            queries = inputs.queries_of(codes, state.code_bits, state.model)
            k = max(1, min(inputs.how_many(k), len(state)))
            request = self._searcher.request(k, state.code_bits, False, n_threads)
            self._searcher.tune(state, queries, request)
