"""Re-ranking: the nearest items by their codes, put in order of a finer distance.

A search with `rerank=` first collects a pool of candidates by code, as bits or by weights, then
compares each of them again and returns the nearest. Distances are summed in double precision,
rounded to float32, and items go in order of (distance, id), so that the order can be checked from
what is returned. With a pool of all items the result is the exact ranking by that distance.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from rankbits import _check, _native
from rankbits.codes import BinaryCodes, Queries
from rankbits.errors import InputError
from rankbits.index.results import NO_ID, Matches, Ragged

_LEAST_POOL = 100
_POOL_FACTOR = 10


class Candidates(NamedTuple):
    """What is to be scored.

    Attributes
    ----------
    queries : the queries, in the forms that the search was given
    nearest : candidates of each query, in order of (distance, id)
    codes_of : gives the codes of ids
    n_threads : threads to score with
    """

    queries: Queries
    nearest: Ragged
    codes_of: Callable[[np.ndarray], BinaryCodes]
    n_threads: int = 1


class Rerank(Protocol):
    """A finer distance of candidates."""

    def require(self, queries: Queries, n_bits: int) -> None:
        """Raise an InputError, before anything is searched, if queries or bits do not fit."""
        ...

    def distances(self, candidates: Candidates) -> np.ndarray:
        """Distance of each of `candidates.nearest.ids`; smaller is nearer."""
        ...


def require_rerank(rerank: object, pool: int | None) -> None:
    """Refuse a pool that nothing compares again."""
    if rerank is None and pool is not None:
        raise InputError("pool must come with rerank, which says how the pool is compared")


def pool_size(rerank: Rerank, pool: int | None, k: int, n: int) -> int:
    """How many items to collect by their codes, so that they are compared again.

    A distance that scans all items as fast as it compares the usual pool takes all, unless a pool
    is given.
    """
    if not (hasattr(rerank, "distances") and hasattr(rerank, "require")):
        raise InputError(
            "rerank must be weighted_bits(...), asymmetric(...) or vectors(...) of "
            f"rankbits.index, got {_check.describe(rerank)}"
        )
    if pool is not None:
        return max(1, min(_check.whole("pool", pool, k), n))
    size = usual_pool(k)
    is_scan_as_fast = n <= size * getattr(rerank, "items_per_candidate", 1)
    return max(1, n if is_scan_as_fast else min(size, n))


def usual_pool(k: int) -> int:
    """How many candidates there are unless a search says it."""
    return max(_POOL_FACTOR * k, _LEAST_POOL)


def reranked(tables: Sequence[Candidates], rerank: Rerank, k: int) -> Matches:
    """The k best candidates; an item of several tables counts with its smallest distance."""
    nearest, n_threads = tables[0].nearest, tables[0].n_threads
    which = tables if getattr(rerank, "reads_codes", True) else tables[:1]
    exact = np.minimum.reduce([np.asarray(rerank.distances(candidates)) for candidates in which])
    best = np.full((len(nearest.counts), k), np.inf, np.float32)
    ids = np.full(best.shape, NO_ID, np.int64)
    if exact.shape != nearest.ids.shape or not _native.best_scores(
        exact.astype(np.float64), nearest.ids, nearest.offsets, best, ids, n_threads
    ):
        raise InputError(
            f"rerank must give one number for each of {len(nearest.ids)} candidates, none of them "
            f"NaN, got {_check.describe(exact)}"
        )
    return Matches(best, ids)
