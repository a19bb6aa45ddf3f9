"""How one state becomes the next: add, upsert, remove, compact; and when parts are merged.

New items become a part. It takes in the parts before it that are less than twice its size, so n
items lie in O(log n) parts and each item is written O(log n) times. A part of which more than half
was removed is written anew. An index in memory and a collection on disk follow the same rules; they
differ only in how a part is built, which is what a `Builder` knows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.codes.sides import require_item_side
from rankbits.errors import InputError
from rankbits.index import inputs
from rankbits.index.store.merge import merged_in_memory
from rankbits.index.store.part import Part
from rankbits.index.store.segment import MAX_ROWS, Ids, Segment
from rankbits.index.store.state import State

SMALL = 512  # items: parts in memory below this are always merged, or searches would ask many
MERGE_BYTES = 1 << 28  # of codes: no merge makes a larger part unless compact() asks for it


class Builder(Protocol):
    """Makes one part of several."""

    def may_merge(self, part: Part) -> bool:
        """Whether a part may be rewritten by the rules above."""
        ...

    def build(self, number: int, parts: Sequence[Part]) -> Part:
        """What is left of parts as one part, with this number or a larger one."""
        ...


class InMemory:
    """Builds parts in memory, and leaves mapped ones where they are."""

    def may_merge(self, part: Part) -> bool:
        """Whether merging would not read a whole file into memory."""
        return not part.segment.is_mapped

    def build(self, number: int, parts: Sequence[Part]) -> Part:
        """One part in memory."""
        return Part.of(number, merged_in_memory(parts))


def add(
    state: State, codes: Any, ids: Any, builder: Builder, factors: Any = None
) -> tuple[State, np.ndarray]:
    """The state with more items, and their ids; without ids, those after the largest so far."""
    state, given = _accept(state, codes, factors)
    if ids is None:
        new_ids = _fresh_ids(state, len(given))
        return _grown(state, given, new_ids, builder), np.array(new_ids, np.int64)
    checked = inputs.ids_of(ids, len(given))
    is_there = state.has(checked)
    if is_there.any():
        raise InputError(
            f"ids must be new, {int(checked[is_there][0])} exists already; call upsert() to "
            "replace codes"
        )
    return _grown(state, given, checked, builder), checked.copy()  # the caller may change it


def upsert(state: State, codes: Any, ids: Any, builder: Builder, factors: Any = None) -> State:
    """The state with items added, or replaced where their ids are there."""
    state, given = _accept(state, codes, factors)
    checked = inputs.ids_of(ids, len(given))
    left = state.without(checked[state.has(checked)])
    return _tidied(_grown(left, given, checked, builder), builder)


def remove(state: State, ids: Any, builder: Builder) -> State:
    """The state without items, all of which must be there."""
    checked = inputs.ids_of(ids)
    state.require(checked)
    return _tidied(state.without(checked), builder)


def compact(state: State, builder: Builder) -> State:
    """The state in one part, without anything that was removed."""
    if len(state.parts) < 2 and not any(part.n_removed for part in state.parts):
        return state
    return rebuilt(state, state.parts, builder)


def rebuilt(
    state: State, parts: Sequence[Part], builder: Builder, new: Segment | None = None
) -> State:
    """The state with one new part in place of some, and of new items."""
    left = tuple(part for part in state.parts if part not in parts)
    sources = [*parts, *([] if new is None else [Part.of(0, new)])]
    n = sum(part.n_alive for part in sources)
    if n == 0:
        return replace(state, parts=left)
    if n > MAX_ROWS:
        raise InputError(f"a part must have {MAX_ROWS} items at most, this one would have {n}")
    built = builder.build(state.next_part, sources)
    return replace(state, parts=(*left, built), next_part=built.number + 1)


def _accept(state: State, codes: Any, factors: Any) -> tuple[State, BinaryCodes]:
    """The codes that shall come in, and the state under their model and side if it knew none yet.

    They are as they are stored: with the factors before them, if the index has factors.

    A state without items has no model to disagree with: it takes the one of what comes in.
    """
    model = state.model if state.parts else None
    given = inputs.codes_of("codes", codes, state.code_bits, model)
    require_item_side("codes", given)
    factor_bytes = inputs.factors_of(factors, len(given), is_needed=state.has_factors)
    if factor_bytes is not None:
        packed = np.concatenate([factor_bytes, given.packed], axis=1)
        given = BinaryCodes(packed, state.n_bits, given.model, given.side)
    if len(given) == 0:
        return state, given
    is_other_model = given.model not in (None, state.model) and not state.parts
    side = given.side if is_other_model else given.side or state.side
    return replace(state, model=given.model or state.model, side=side), given


def _fresh_ids(state: State, n: int) -> range:
    if state.next_id + n - 1 > inputs.MAX_ID:
        raise InputError(
            f"ids must be given: {n} more than {state.next_id - 1} would exceed 2**63 - 2"
        )
    return range(state.next_id, state.next_id + n)


def _grown(state: State, codes: BinaryCodes, ids: Ids, builder: Builder) -> State:
    """The state with new items; parts before them that are about as large are merged in."""
    if len(codes) == 0:
        return state
    last = ids[-1] if isinstance(ids, range) else ids.max()
    state = replace(state, next_id=max(state.next_id, int(last) + 1))
    merged: list[Part] = []
    n = len(codes)
    for part in reversed(state.parts):
        is_small = len(part.segment) < max(2 * n, 0 if part.segment.is_mapped else SMALL)
        is_large = (part.n_alive + n) * state.width > MERGE_BYTES
        if not is_small or is_large or not builder.may_merge(part):
            break
        merged.append(part)
        n += part.n_alive
    return rebuilt(state, merged, builder, Segment.of(codes, ids))


def _tidied(state: State, builder: Builder) -> State:
    """The state without parts of which more than half was removed."""
    thin = [part for part in state.parts if part.n_removed > part.n_alive]
    thin = [part for part in thin if builder.may_merge(part)]
    return rebuilt(state, thin, builder) if thin else state
