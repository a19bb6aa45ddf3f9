"""Searching a state: every part is asked by its engine, and the answers become one.

They are merged in order of (distance, id), so neither the kind of engine nor the history of the
parts can be seen in the result.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankbits import _check, _native
from rankbits.codes import BinaryCodes
from rankbits.index import engines, inputs
from rankbits.index.engines.base import Options, Request
from rankbits.index.engines.cache import EngineCache
from rankbits.index.results import Ragged, combined, nothing
from rankbits.index.store.part import Part
from rankbits.index.store.segment import Segment
from rankbits.index.store.state import State


class Searcher:
    """How to search, and the engines that were built for it."""

    def __init__(self, kind: str, n_threads: int | None, options: dict[str, Any]) -> None:
        self._cache = EngineCache()
        self._cached_state: State | None = None
        self.kind = engines.get(kind).name
        self.n_threads = _checked_threads(n_threads)
        self.options: Options = engines.get(kind).options_class().changed(self.kind, options)

    def like(self, kind: str | None, n_threads: int | None, options: dict[str, Any]) -> "Searcher":
        """Another one with nothing built; what is not given stays, options of another kind go."""
        other = Searcher(self.kind if kind is None else kind, n_threads or self.n_threads, {})
        before = self.options if other.kind == self.kind else other.options
        other.options = before.changed(other.kind, options)
        return other

    def configure(self, kind: str | None, n_threads: int | None, options: dict[str, Any]) -> None:
        """Search in another way from now on; engines that were built stay."""
        other = self.like(kind, n_threads, options)
        self.kind, self.n_threads, self.options = other.kind, other.n_threads, other.options

    def request(
        self,
        k: int,
        radius: int,
        is_complete: bool,
        n_threads: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> Request:
        """What a search asks of an engine."""
        chosen = self.options
        if options:
            chosen = chosen.changed(self.kind, options, in_search=True)
        threads = _native.threads(self.n_threads if n_threads is None else n_threads)
        return Request(k, radius, is_complete, threads, chosen)

    def search(
        self, state: State, queries: BinaryCodes, request: Request, allowed: Any = None
    ) -> Ragged:
        """What all parts have for the queries, in order of (distance, id)."""
        if len(queries) == 0 or not state.parts:
            return nothing(len(queries))
        self._follow(state)
        packed = queries.packed
        if len(state.parts) == 1 and allowed is None:  # the usual case, which a lone query feels
            return self._search_part(state, state.parts[0], packed, request, None)
        selections: Sequence[np.ndarray | None] = [None] * len(state.parts)
        if allowed is not None:
            selections = inputs.selections(allowed, [p.alive_ids for p in state.parts], len(state))
        answers = [
            self._search_part(state, part, packed, request, selection)
            for part, selection in zip(state.parts, selections, strict=True)
        ]
        k = request.k or None
        return combined(answers, len(queries), k, is_complete=request.is_complete)

    def _search_part(
        self,
        state: State,
        part: Part,
        packed: np.ndarray,
        request: Request,
        selection: np.ndarray | None,
    ) -> Ragged:
        segment = state.code_segment(part)
        engine = self._cache.engine(segment, self.kind, request.options, request.n_threads)
        offsets, distances, rows = engine.search(packed, part.allowed(selection), request)
        return Ragged(offsets, distances, segment.ids_of(rows))

    def tune(self, state: State, queries: BinaryCodes, request: Request) -> None:
        """Build and measure now what later searches would."""
        self._follow(state)
        for part in state.parts if len(queries) else ():
            segment = state.code_segment(part)
            engine = self._cache.engine(segment, self.kind, request.options, request.n_threads)
            engine.tune(queries.packed, part.allowed(None), request)

    def n_bytes(self, state: State) -> int:
        """Memory, or mapped files, of a state and of the engines built for it."""
        self._follow(state)
        copies = _code_segments(state) if state.has_factors else []
        n_bytes = sum(part.n_bytes for part in state.parts) + self._cache.n_bytes
        return n_bytes + sum(copy.planes.nbytes for copy in copies)

    def clear(self) -> None:
        """Forget all engines."""
        self._cached_state = None
        self._cache.retain(())

    def _follow(self, state: State) -> None:
        """Forget engines of segments that the state no longer has."""
        if self._cached_state is not state:
            self._cache.retain(_code_segments(state))
            self._cached_state = state


def _code_segments(state: State) -> list[Segment]:
    """What engines may have been built of: segments, or their copies without factors."""
    if not state.has_factors:
        return [part.segment for part in state.parts]
    copies = [part.segment.copy_without_factors() for part in state.parts]
    return [copy for copy in copies if copy is not None]


def _checked_threads(n_threads: int | None) -> int | None:
    return None if n_threads is None else _check.whole("n_threads", n_threads, 1, 1024)
