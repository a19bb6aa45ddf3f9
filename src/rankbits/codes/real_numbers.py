"""Real-valued queries against codes: what each bit, or every four bits, add to a score.

A query has a weight for each bit, which is added where the bit is set and taken off where it is
not. Or it has a table of 16 numbers for every four bits, one of which is added: the number at the
value of the four bits, of which the first is the highest. Where the number of bits is no multiple
of four, the last table is for the bits that are left and for zeros.

Notation:
    Q  queries      b  bits
"""

from typing import Any

import numpy as np

from rankbits import _check, _native
from rankbits.codes.sums import N_ENTRIES, count_books
from rankbits.errors import InputError


def real_numbers(name: str, values: Any, n_bits: int) -> np.ndarray:
    """Weights (Q, b) or tables (Q, 16 ceil(b / 4)) as float64, of which float32 holds every sum.

    >>> real_numbers("weights", [[0.5, -1]], 2)
    array([[ 0.5, -1. ]])
    """
    array = _check.array(name, values)
    n_entries = N_ENTRIES * count_books(n_bits)
    is_fitting = array.ndim == 2 and array.shape[1] in (n_bits, n_entries)
    if array.dtype.kind not in "biuf" or not is_fitting:
        raise InputError(
            f"{name} must be real numbers of shape (queries, {n_bits}), one for each bit, or "
            f"(queries, {n_entries}), 16 for every four bits, got {_check.describe(array)}"
        )
    _check.finite(name, array)
    numbers = np.ascontiguousarray(array, np.float64)
    if not have_finite_scores(numbers):
        raise InputError(f"{name} must add up to a number that float32 holds; divide them first")
    return numbers


def largest_score(numbers: np.ndarray) -> float:
    """What the absolute values of a query's numbers add up to at most; no score is larger."""
    with np.errstate(over="ignore"):
        return float(np.abs(numbers).sum(axis=1).max(initial=0.0))


def have_finite_scores(numbers: np.ndarray) -> bool:
    """Whether float32 holds every score that rows of numbers may give."""
    return largest_score(numbers) <= float(np.finfo(np.float32).max)


def score_codes(
    numbers: np.ndarray, n_bits: int, packed: np.ndarray, n_codes: np.ndarray, n_threads: int
) -> np.ndarray:
    """Scores of codes as float64, of which the first n_codes[0] are for the first query.

    Sums are those of `HammingIndex.search_real` to the last bit, before they are rounded.
    """
    scores, offsets = np.empty(len(packed)), np.concatenate([[0], np.cumsum(n_codes)])
    if numbers.shape[1] == n_bits:
        masks = np.zeros((len(numbers), packed.shape[1]), np.uint8)
        _native.score_bytes(numbers, -numbers, masks, packed, offsets, scores, n_threads)
    else:
        _native.score_tables(numbers, packed, offsets, scores, n_threads)
    return scores
