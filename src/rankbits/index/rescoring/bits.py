"""Re-ranking: the nearest items by Hamming distance, put in order of a finer score.

A search with `rescore=` first finds a pool of candidates by Hamming distance, then scores each of
them and returns the best. Scores are like distances: the smaller, the nearer. They are summed in
float64, rounded to float32, and items go in order of (score, id), so that the order can be checked
from what is returned. With a pool of all items the result is the exact ranking by score.

Notation:
    Q  queries      M  candidates of all queries      b  bits      w  bytes in a code
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankbits import _check
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.index.results import NO_ID, Ragged

_LEAST_POOL = 100
_POOL_FACTOR = 10
_BLOCK_CELLS = 1 << 20  # table entries, or candidates times bytes, at a time
_VALUES = 256  # of a byte


class Candidates(NamedTuple):
    """What is to be scored.

    Attributes
    ----------
    queries : codes of the queries
    found : candidates of each query, in order of (Hamming distance, id)
    codes_of : gives the codes of ids
    """

    queries: BinaryCodes
    found: Ragged
    codes_of: Callable[[np.ndarray], BinaryCodes]


class Rescore(Protocol):
    """A score for candidates."""

    def require(self, n_queries: int, n_bits: int) -> None:
        """Raise an InputError, before anything is searched, if queries or bits do not fit."""
        ...

    def scores(self, candidates: Candidates) -> np.ndarray:
        """Score of each of `candidates.found.ids`, the smaller the nearer."""
        ...


def pool_size(rescore: Rescore | None, pool: int | None, k: int, n: int) -> int:
    """How many items to find by Hamming distance: k, or the pool if they are scored again."""
    if rescore is None:
        if pool is not None:
            raise InputError("pool must come with rescore, which says how the pool is scored")
        return k
    if not (hasattr(rescore, "scores") and hasattr(rescore, "require")):
        raise InputError(
            "rescore must be weighted_bits(...), asymmetric(...) or vectors(...) of "
            f"rankbits.index, got {_check.describe(rescore)}"
        )
    wanted = max(_POOL_FACTOR * k, _LEAST_POOL) if pool is None else _check.whole("pool", pool, k)
    return max(1, min(wanted, n))


def rescored(candidates: Candidates, rescore: Rescore, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k best candidates: scores float32 and ids int64 (Q, k), filled with inf and -1."""
    found = candidates.found
    exact = np.asarray(rescore.scores(candidates))
    if exact.shape != found.ids.shape or np.isnan(exact).any():
        raise InputError(
            f"rescore must give one number for each of {len(found.ids)} candidates, none of them "
            f"NaN, got {_check.describe(exact)}"
        )
    with np.errstate(over="ignore"):  # beyond float32 is infinitely far
        scores = exact.astype(np.float32) + np.float32(0)  # and -0.0 is 0.0
    near = _near(scores, found.offsets, k)
    order = near[np.lexsort((found.ids[near], scores[near], found.queries()[near]))]
    starts = np.searchsorted(near, found.offsets[:-1])
    is_there = np.arange(k) < found.counts[:, None]
    places = (starts[:, None] + np.arange(k))[is_there]
    best = np.full(is_there.shape, np.inf, np.float32)
    ids = np.full(is_there.shape, NO_ID, np.int64)
    best[is_there], ids[is_there] = scores[order[places]], found.ids[order[places]]
    return best, ids


def _near(scores: np.ndarray, offsets: np.ndarray, k: int) -> np.ndarray:
    """Places of each query's k smallest scores, with all ties of the k-th: the rest needs no sort.

    They ascend, so that queries stay in order.
    """
    is_near = np.ones(len(scores), bool)
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        if stop - start > k:
            mine = scores[start:stop]
            is_near[start:stop] = mine <= np.partition(mine, k - 1)[k - 1]
    return np.flatnonzero(is_near)


class weighted_bits:  # noqa: N801 - reads as a function: search(..., rescore=weighted_bits(w))
    """Weighted Hamming distance: the sum of the weights of the bits that differ.

    Parameters
    ----------
    weights : array (b,), or (Q, b) for weights of each query; finite, 0 or more

    >>> from rankbits.index import HammingIndex
    >>> index = HammingIndex(2, kind="scan")
    >>> _ = index.add(BinaryCodes.from_bits([[0, 1], [1, 0]]))
    >>> scores, ids = index.search(
    ...     BinaryCodes.from_bits([[0, 0]]), k=2, rescore=weighted_bits([0.5, 2.0])
    ... )
    >>> scores.tolist(), ids.tolist()
    ([[0.5, 2.0]], [[1, 0]])
    """

    def __init__(self, weights: Any) -> None:
        self._weights = _real("weights", weights, "(b,) or (queries, b)", (1, 2))
        if (self._weights < 0).any():
            raise InputError(f"weights must be 0 or more, got {self._weights.min()}")

    def require(self, n_queries: int, n_bits: int) -> None:
        """Refuse weights that are not as many as bits, or as queries if each has its own."""
        _require_shape("weights", np.atleast_2d(self._weights), n_queries, n_bits)

    def scores(self, candidates: Candidates) -> np.ndarray:
        """Sum over bytes of what the bits that differ weigh."""
        tables = np.broadcast_to(self._weights, (len(candidates.queries), self._weights.shape[-1]))
        return _sums(tables, np.zeros_like(tables), candidates, candidates.queries.packed)


class asymmetric:  # noqa: N801 - as above
    """Real-valued queries against codes: score = -<logits, code as -1 and +1>.

    The query keeps how sure it is of each bit, which its own code forgets.

    Parameters
    ----------
    logits : array (Q, b), finite, whose signs are the bits; what `hasher.project(X)` gives

    >>> from rankbits.index import HammingIndex
    >>> index = HammingIndex(2, kind="scan")
    >>> _ = index.add(BinaryCodes.from_bits([[0, 1], [1, 0]]))
    >>> logits = np.array([[0.25, 3.0]])
    >>> scores, ids = index.search(
    ...     BinaryCodes.from_logits(logits), k=2, rescore=asymmetric(logits)
    ... )
    >>> scores.tolist(), ids.tolist()
    ([[-2.75, 2.75]], [[0, 1]])
    """

    def __init__(self, logits: Any) -> None:
        self._logits = _real("logits", logits, "(queries, b)", (2,))

    def require(self, n_queries: int, n_bits: int) -> None:
        """Refuse logits that are not as many as queries and bits."""
        _require_shape("logits", self._logits, n_queries, n_bits, is_each=True)

    def scores(self, candidates: Candidates) -> np.ndarray:
        """Sum over bytes of minus the logits of set bits and plus those of others."""
        no_mask = np.zeros_like(candidates.queries.packed)
        return _sums(-self._logits, self._logits, candidates, no_mask)


def _sums(
    if_set: np.ndarray, if_clear: np.ndarray, candidates: Candidates, masks: np.ndarray
) -> np.ndarray:
    """For each candidate the sum over bits of code ^ mask: if_set[q, bit] or if_clear[q, bit].

    The sums of each byte's 256 values are in a table, so that a candidate costs w additions, always
    in the same order: equal codes get equal scores, however queries are put together.
    """
    found, width = candidates.found, masks.shape[1]
    queries, sums = found.queries(), np.empty(len(found.ids))
    step = max(1, _BLOCK_CELLS // (width * _VALUES))
    for first in range(0, len(masks), step):
        last = min(first + step, len(masks))
        tables = _tables(if_set[first:last], if_clear[first:last], width)
        for rows in _blocks(found.offsets[first], found.offsets[last], _BLOCK_CELLS // width):
            mine = queries[rows]
            packed = candidates.codes_of(found.ids[rows]).packed ^ masks[mine]
            starts = (mine[:, None] - first) * width + np.arange(width)
            sums[rows] = tables.take(starts * _VALUES + packed).sum(axis=1)
    return sums


def _tables(if_set: np.ndarray, if_clear: np.ndarray, width: int) -> np.ndarray:
    """(Q, w, 256): what each value of each byte adds; bits behind the last one add nothing."""
    shape = (len(if_set), width, 8)
    ones, zeros = np.zeros((2, *shape))
    ones.reshape(len(if_set), -1)[:, : if_set.shape[1]] = if_set
    zeros.reshape(len(if_set), -1)[:, : if_set.shape[1]] = if_clear
    tables = np.zeros((*shape[:2], _VALUES))
    for bit in range(8):  # the lowest bit of a byte is its last
        half = 1 << bit
        tables[..., half : 2 * half] = tables[..., :half] + ones[..., 7 - bit, None]
        tables[..., :half] += zeros[..., 7 - bit, None]
    return tables


def _blocks(start: int, stop: int, step: int) -> list[slice]:
    step = max(1, step)
    return [slice(first, min(first + step, stop)) for first in range(start, stop, step)]


def _real(name: str, values: Any, shape: str, n_dims: tuple[int, ...]) -> np.ndarray:
    """Finite numbers as float64."""
    array = _check.array(name, values)
    if array.dtype.kind not in "biuf" or array.ndim not in n_dims:
        raise InputError(
            f"{name} must be real numbers of shape {shape}, got {_check.describe(array)}"
        )
    _check.finite(name, array)
    return array.astype(np.float64)


def _require_shape(
    name: str, rows: np.ndarray, n_queries: int, n_bits: int, *, is_each: bool = False
) -> None:
    """Rows of n_bits, one for each query, or one for all unless is_each."""
    is_for_all = len(rows) == 1 and not is_each
    if rows.shape[1] != n_bits or not (is_for_all or len(rows) == n_queries):
        raise InputError(
            f"{name} must have {n_bits} bits and a row for each of {n_queries} queries, got "
            f"shape {rows.shape}"
        )
