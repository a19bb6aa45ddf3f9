"""Search by real-valued queries: the largest inner products of weights and codes as -1 and +1.

A query is one vector, seen once: nothing forces it to be bits. Nor need a bit have a meaning of its
own: in place of a weight for each, a query may have a table of 16 numbers for every four bits, one
of which counts. The numbers of a query are called its weights either way.

Whatever the kind of index, every code is looked at: buckets of near codes and lists of near centers
are found by Hamming distance, which says little about such scores. The kernel bounds scores by
rounded sums and computes only those that may matter. It reads each part of an index from its
beginning to its end, once for every 128 queries, so a mapped file may be larger than memory.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankbits import _check, _native
from rankbits.codes import Queries
from rankbits.codes.real_numbers import largest_score, real_numbers
from rankbits.errors import InputError
from rankbits.index import inputs
from rankbits.index.results import NO_ID
from rankbits.index.store.part import Part
from rankbits.index.store.state import State

_WORTH_A_THREAD = 1 << 21  # bytes compared, some 50 µs; a thread takes 5 to wake
_NO_CORRECTION = np.empty((0, 0))
Answer = tuple[np.ndarray, np.ndarray]  # scores and ids, (queries, k)


def weights_of(weights: Any, n_bits: int) -> np.ndarray:
    """Weights or tables of queries as float64, finite also when they are added up."""
    return real_numbers("weights", weights, n_bits)


def checked(queries: Queries, n_bits: int, *, has_factors: bool) -> tuple[np.ndarray, np.ndarray]:
    """Weights and correction of queries; one that an index without factors cannot use is left."""
    weights = weights_of(queries.weights, n_bits)
    correction = queries.correction if has_factors else None
    return weights, correction_of(correction, weights, has_factors=has_factors)


def correction_of(correction: Any, weights: np.ndarray, *, has_factors: bool) -> np.ndarray:
    """A correction as float64 of shape (3, 256), or an empty array for none."""
    if correction is None:
        return _NO_CORRECTION
    if not has_factors:
        raise InputError("correction must come with an index that was made with factors=True")
    array = _check.array("correction", correction)
    if array.dtype.kind not in "biuf" or array.shape != (3, 256):
        raise InputError(
            "correction must be real numbers of shape (3, 256), such as hasher.correction(), got "
            f"{_check.describe(array)}"
        )
    _check.finite("correction", array)
    numbers = np.ascontiguousarray(array, np.float64)
    if (numbers[:2] < 0).any():
        raise InputError(f"correction must multiply by 0 or more, got {numbers[:2].min()}")
    with np.errstate(over="ignore"):
        scale, added = numbers[0].max() * numbers[1].max(), np.abs(numbers[2]).max()
        largest = largest_score(weights) * scale + added
    if not largest <= np.finfo(np.float32).max:
        raise InputError("correction must give scores that float32 holds; divide weights first")
    return numbers


def search(
    state: State,
    weights: np.ndarray,
    k: int,
    n_threads: int,
    allowed: Any,
    correction: np.ndarray = _NO_CORRECTION,
) -> Answer:
    """The k best items of all parts: scores (queries, k), largest first, and ids."""
    selections: list[np.ndarray | None] = [None] * len(state.parts)
    if allowed is not None:
        alive_ids = [part.alive_ids for part in state.parts]
        selections = list(inputs.selections(allowed, alive_ids, len(state)))
    answers = [
        _search_part(part, weights, state.code_bits, k, n_threads, selection, correction)
        for part, selection in zip(state.parts, selections, strict=True)
    ]
    return merged(answers, len(weights), k)


def merged(answers: Sequence[Answer], n_queries: int, k: int) -> Answer:
    """The k best of several answers to the same queries, whose ids differ."""
    if len(answers) == 1:
        return answers[0]
    scores = np.concatenate([np.empty((n_queries, 0), np.float32), *(a[0] for a in answers)], 1)
    ids = np.concatenate([np.empty((n_queries, 0), np.int64), *(a[1] for a in answers)], 1)
    order = np.lexsort((ids, ids == NO_ID, -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(ids, order, axis=1)


def _search_part(
    part: Part,
    weights: np.ndarray,
    n_bits: int,
    k: int,
    n_threads: int,
    selection: np.ndarray | None,
    correction: np.ndarray,
) -> Answer:
    segment = part.segment
    scores = np.full((len(weights), k), -np.inf, np.float32)
    rows = np.full((len(weights), k), NO_ID, np.int64)
    counts = np.zeros(len(weights), np.int64)
    _native.scan_real(
        segment.planes,
        len(segment),
        n_bits,
        part.allowed(selection),
        weights,
        correction,
        scores,
        rows,
        counts,
        min(n_threads, 1 + len(weights) * segment.planes.nbytes // _WORTH_A_THREAD),
    )
    is_there = np.arange(k) < counts[:, None]
    rows[is_there] = segment.ids_of(rows[is_there])
    return scores, rows
