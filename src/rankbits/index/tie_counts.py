"""How many items lie at each distance of a query: the sizes of all ties, without any item."""

from typing import Any

import numpy as np

from rankbits import _native
from rankbits.codes import BinaryCodes
from rankbits.index import inputs
from rankbits.index.store.part import Part
from rankbits.index.store.segment import FACTOR_BYTES, GROUP
from rankbits.index.store.state import State

_BLOCK_CELLS = 1 << 20  # distances at a time


def tie_counts(state: State, queries: BinaryCodes, allowed: Any, n_threads: int) -> np.ndarray:
    """Items of all parts by query and distance, int64 of shape (queries, b + 1)."""
    counts = np.zeros((len(queries), state.code_bits + 1), np.int64)
    if len(queries) == 0:
        return counts
    selections: list[np.ndarray | None] = [None] * len(state.parts)
    if allowed is not None:
        alive_ids = [part.alive_ids for part in state.parts]
        selections = list(inputs.selections(allowed, alive_ids, len(state)))
    for part, selection in zip(state.parts, selections, strict=True):
        mask = None if selection is None else _mask(part, selection)
        _add_part(counts, state, part, mask, queries.packed, n_threads)
    return counts


def _mask(part: Part, selection: np.ndarray) -> np.ndarray:
    """Which of the items that are still there a filter leaves."""
    return selection if selection.dtype == bool else np.isin(part.alive_ids(), selection)


def _add_part(
    counts: np.ndarray,
    state: State,
    part: Part,
    mask: np.ndarray | None,
    queries: np.ndarray,
    n_threads: int,
) -> None:
    n_seen, step = 0, max(GROUP, _BLOCK_CELLS // len(queries) // GROUP * GROUP)
    for start in range(0, len(part.segment), step):
        packed = part.packed_between(start, min(start + step, len(part.segment)))
        n = len(packed)
        if mask is not None:
            packed = packed[mask[n_seen : n_seen + n]]
        n_seen += n
        codes = packed[:, FACTOR_BYTES:] if state.has_factors else packed
        distances = np.empty((len(queries), len(codes)), np.uint16)
        if distances.size:
            _native.distances(queries, np.ascontiguousarray(codes), distances, n_threads=n_threads)
        for row, one in zip(counts, distances, strict=True):
            row += np.bincount(one, minlength=len(row))[: len(row)]
