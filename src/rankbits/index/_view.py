"""Indexes of the states of a collection, the newest of them kept for searching."""

from typing import Any

from rankbits.index._hamming import HammingIndex
from rankbits.index._part import Part
from rankbits.index._state import Sealed, State


def index_of(state: State, *, is_mapped: bool, **options: Any) -> HammingIndex:
    """A state as an index that shares nothing but mapped files."""
    parts = [sealed.part(is_mapped=is_mapped) for sealed in state.sealed]
    return _index(state, parts, options)


def _index(state: State, sealed: list[Part], options: dict[str, Any]) -> HammingIndex:
    rest = [Part(state.pending_segment)] if state.pending else []
    return HammingIndex._of_parts(state.n_bits, [*sealed, *rest], state.next_id, **options)


class View:
    """The index of the last state asked for; what engines made of a segment outlives changes."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._state: State | None = None
        self._index: HammingIndex | None = None
        self._parts: dict[Sealed, Part] = {}

    def of(self, state: State) -> HammingIndex:
        """The index of a state, to be searched and not to be changed."""
        if self._index is None or self._state is not state:
            engines = {sealed.number: part.engines for sealed, part in self._parts.items()}
            parts = {sealed: self._parts.get(sealed) or sealed.part() for sealed in state.sealed}
            for sealed, part in parts.items():
                part.engines = engines.get(sealed.number, part.engines)
            self._index = _index(state, list(parts.values()), self._options)
            self._state, self._parts = state, parts
        return self._index
