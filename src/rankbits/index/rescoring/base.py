"""Re-ranking: the nearest items by Hamming distance, put in order of a finer score.

A search with `rescore=` first collects a pool of candidates by Hamming distance, then scores each
of them and returns the best. Scores are like distances: smaller is nearer. They are summed in
double precision, rounded to float32, and items go in order of (score, id), so that the order can be
checked from what is returned. With a pool of all items the result is the exact ranking by score.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from rankbits import _check, _native
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.index.results import NO_ID, Ragged

_LEAST_POOL = 100
_POOL_FACTOR = 10


class Candidates(NamedTuple):
    """What is to be scored.

    Attributes
    ----------
    queries : codes of the queries
    nearest : candidates of each query, in order of (Hamming distance, id)
    codes_of : gives the codes of ids
    n_threads : threads to score with
    """

    queries: BinaryCodes
    nearest: Ragged
    codes_of: Callable[[np.ndarray], BinaryCodes]
    n_threads: int = 1


class Rescore(Protocol):
    """A score for candidates."""

    def require(self, n_queries: int, n_bits: int) -> None:
        """Raise an InputError, before anything is searched, if queries or bits do not fit."""
        ...

    def scores(self, candidates: Candidates) -> np.ndarray:
        """Score of each of `candidates.nearest.ids`; smaller is nearer."""
        ...


def pool_size(rescore: Rescore | None, pool: int | None, k: int, n: int) -> int:
    """How many items to collect by Hamming distance: k, or the pool if they are scored again.

    A score that scans all items as fast as it scores the usual pool takes all, unless a pool is
    given.
    """
    if rescore is None:
        if pool is not None:
            raise InputError("pool must come with rescore, which says how the pool is scored")
        return k
    if not (hasattr(rescore, "scores") and hasattr(rescore, "require")):
        raise InputError(
            "rescore must be weighted_bits(...), asymmetric(...) or vectors(...) of "
            f"rankbits.index, got {_check.describe(rescore)}"
        )
    if pool is not None:
        return max(1, min(_check.whole("pool", pool, k), n))
    size = max(_POOL_FACTOR * k, _LEAST_POOL)
    is_scan_as_fast = n <= size * getattr(rescore, "items_per_candidate", 1)
    return max(1, n if is_scan_as_fast else min(size, n))


def rescored(candidates: Candidates, rescore: Rescore, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k best candidates: scores float32 and ids int64 (Q, k), filled with inf and -1."""
    nearest = candidates.nearest
    exact = np.asarray(rescore.scores(candidates))
    best = np.full((len(nearest.counts), k), np.inf, np.float32)
    ids = np.full(best.shape, NO_ID, np.int64)
    if exact.shape != nearest.ids.shape or not _native.best_scores(
        exact.astype(np.float64), nearest.ids, nearest.offsets, best, ids, candidates.n_threads
    ):
        raise InputError(
            f"rescore must give one number for each of {len(nearest.ids)} candidates, none of them "
            f"NaN, got {_check.describe(exact)}"
        )
    return best, ids
