"""Search by real-valued queries: the largest inner products of weights and codes as -1 and +1.

A query is one vector, seen once: nothing forces it to be bits. Whatever the kind of index, every
code is looked at; the kernel bounds scores by rounded sums and computes only those that may matter.
"""

from typing import Any

import numpy as np

from rankbits import _check, _native
from rankbits.errors import InputError
from rankbits.index import inputs
from rankbits.index.results import NO_ID
from rankbits.index.store.part import Part
from rankbits.index.store.state import State


def weights_of(weights: Any, n_bits: int) -> np.ndarray:
    """Weights as float64 of shape (queries, n_bits), finite also when they are added up."""
    array = _check.array("weights", weights)
    if array.dtype.kind not in "biuf" or array.ndim != 2 or array.shape[1] != n_bits:
        raise InputError(
            f"weights must be real numbers of shape (queries, {n_bits}), got "
            f"{_check.describe(array)}"
        )
    _check.finite("weights", array)
    numbers = np.ascontiguousarray(array, np.float64)
    with np.errstate(over="ignore"):
        largest = np.abs(numbers).sum(axis=1).max(initial=0.0)
    if largest > np.finfo(np.float32).max:
        raise InputError("weights must add up to a number that float32 holds; divide them first")
    return numbers


def search(
    state: State, weights: np.ndarray, k: int, n_threads: int, allowed: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The k best items of all parts: scores (queries, k), largest first, and ids."""
    selections: list[np.ndarray | None] = [None] * len(state.parts)
    if allowed is not None:
        alive_ids = [part.alive_ids for part in state.parts]
        selections = list(inputs.selections(allowed, alive_ids, len(state)))
    answers = [
        _search_part(part, weights, k, n_threads, selection)
        for part, selection in zip(state.parts, selections, strict=True)
    ]
    if len(answers) == 1:
        return answers[0]
    n_queries = len(weights)
    scores = np.concatenate([np.empty((n_queries, 0), np.float32), *(a[0] for a in answers)], 1)
    ids = np.concatenate([np.empty((n_queries, 0), np.int64), *(a[1] for a in answers)], 1)
    order = np.lexsort((ids, ids == NO_ID, -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(ids, order, axis=1)


def _search_part(
    part: Part, weights: np.ndarray, k: int, n_threads: int, selection: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    segment = part.segment
    segment.require_whole()
    scores = np.full((len(weights), k), -np.inf, np.float32)
    rows = np.full((len(weights), k), NO_ID, np.int64)
    counts = np.zeros(len(weights), np.int64)
    _native.scan_real(
        segment.planes,
        len(segment),
        segment.n_bits,
        part.allowed(selection),
        weights,
        scores,
        rows,
        counts,
        n_threads,
    )
    is_there = np.arange(k) < counts[:, None]
    rows[is_there] = segment.ids_of(rows[is_there])
    return scores, rows
