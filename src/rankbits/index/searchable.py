"""What an index in memory and a collection on disk have in common: all but where the state is.

A change takes the state and gives the next one; a search takes the state as it stands. So each
search sees one moment, also while another thread changes the index.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from rankbits import _native
from rankbits._mapped import unchanged
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import inputs, real_queries
from rankbits.index.door import BITS, CodeRequest, Codes, Door, Moment
from rankbits.index.engines.searcher import Searcher
from rankbits.index.results import Matches, matches_of
from rankbits.index.store import changes
from rankbits.index.store.changes import Builder
from rankbits.index.store.state import State
from rankbits.index.tie_counts import tie_counts

Result = TypeVar("Result")
Change = Callable[[State, Builder], tuple[State, Result]]


class StateMoment(Moment):
    """A state, and how it is searched."""

    def __init__(self, state: State, searcher: Searcher) -> None:
        self._state, self._searcher = state, searcher
        self.codes_of = (state.codes,)

    def __len__(self) -> int:
        return len(self._state)

    def nearest(self, request: CodeRequest) -> Matches:
        """The nearest items of all parts."""
        state, queries, n_threads = self._state, request.tables[0], request.n_threads
        k = 0 if request.k is None else min(request.k, len(state))
        if request.by == BITS:
            codes = inputs.queries_of(queries.bits, state.code_bits, state.model)
            radius = state.code_bits if request.radius is None else request.radius
            is_ragged = request.is_complete or request.k is None
            asked = self._searcher.request(
                0 if request.k is None else max(1, k),
                min(radius, state.code_bits),
                is_ragged,
                n_threads,
                request.options,
            )
            answer = self._searcher.search(state, codes, asked, request.allowed)
            return matches_of(answer, None if is_ragged else k)
        weights, correction = real_queries.checked(
            queries, state.code_bits, has_factors=state.has_factors
        )
        threads = _native.threads(self._searcher.n_threads if n_threads is None else n_threads)
        scores, ids = real_queries.search(state, weights, k, threads, request.allowed, correction)
        return Matches(0.0 - scores, ids)


class Searchable(Door):
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

    @contextmanager
    def _look(self, *sources: Any) -> Iterator[StateMoment]:
        state = self._current()
        with unchanged(state, *sources):
            yield StateMoment(state, self._searcher)

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
