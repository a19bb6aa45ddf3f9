"""How the state of a collection grows and shrinks, and when it writes a segment file.

Codes gather in SQLite until there are enough for a file. A new file takes in the sealed segments
before it that are less than twice its size, so n items lie in O(log n) files and each is written
O(log n) times. A segment of which more than half was removed is written anew.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.index._merge import Source
from rankbits.index._segment import Segment
from rankbits.index._state import Sealed, State
from rankbits.index._store import Store

SEAL_AT = 1 << 16  # codes: as many become a file
MAX_BATCHES = 1 << 10  # removals thin batches out; as many become a file, however small
MERGE_BYTES = 1 << 28  # of codes: no larger file is written unless compact() or one add() asks
_LAST_ID = int(np.iinfo(np.int64).max) - 1


def fresh_ids(state: State, n: int) -> np.ndarray:
    """The n ids that follow the largest there ever was."""
    if state.next_id + n - 1 > _LAST_ID:
        raise InputError(
            f"ids must be given: {n} more than {state.next_id - 1} would exceed 2**63 - 2"
        )
    return np.arange(state.next_id, state.next_id + n)


def grown(store: Store, state: State, codes: BinaryCodes, ids: np.ndarray) -> State:
    """A state with new items, in a new file if there are enough of them."""
    if len(ids) == 0:
        return state
    state = replace(state, next_id=max(state.next_id, int(ids.max()) + 1))
    n = state.n_pending + len(ids)
    if n < SEAL_AT and len(state.pending) < MAX_BATCHES:
        return state.plus(codes, ids)
    taken: list[Sealed] = []
    for sealed in reversed(state.sealed):
        size = (sealed.n_alive + n) * codes.packed.shape[1]
        if len(sealed) >= 2 * n or size > MERGE_BYTES:
            break
        taken.append(sealed)
        n += sealed.n_alive
    return merged(store, state, taken, Segment.of(codes, ids), takes_pending=True)


def thinned(store: Store, state: State) -> State:
    """A state whose files hold no more removed items than others."""
    thin = [sealed for sealed in state.sealed if 2 * sealed.n_alive < len(sealed)]
    return merged(store, state, thin) if thin else state


def compacted(store: Store, state: State) -> State:
    """A state with one file and nothing else."""
    is_thin = any(sealed.n_alive < len(sealed) for sealed in state.sealed)
    if len(state.sealed) < 2 and not state.pending and not is_thin:
        return state
    return merged(store, state, state.sealed, takes_pending=True)


def merged(
    store: Store,
    state: State,
    taken: Sequence[Sealed],
    new: Segment | None = None,
    *,
    takes_pending: bool = False,
) -> State:
    """A state with one new file in place of some, of new items, and of those not yet sealed."""
    sources = [sealed.source for sealed in taken]
    if takes_pending and state.pending:
        sources.append(Source(state.pending_segment, None))
    if new is not None:
        sources.append(Source(new, None))
    made = store.write(state.n_bits, state.next_segment, sources)
    kept = [sealed for sealed in state.sealed if sealed not in taken]
    return replace(
        state,
        sealed=tuple([*kept, made] if made else kept),
        pending=() if takes_pending else state.pending,
        next_segment=made.number + 1 if made else state.next_segment,
    )
