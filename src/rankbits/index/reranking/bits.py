"""Distances of candidates by their codes: weights of bits, or real-valued queries.

Notation:
    Q  queries      b  bits      w  bytes in a code
"""

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from rankbits import _check, _native
from rankbits.codes import BinaryCodes, Queries
from rankbits.codes.real_numbers import have_finite_scores
from rankbits.errors import InputError
from rankbits.index.reranking.base import Candidates

_BLOCK_CELLS = 1 << 22  # bytes of candidates at a time


class weighted_bits:  # noqa: N801 - reads as a function: search(..., rerank=weighted_bits(w))
    """Weighted Hamming distance: the sum of the weights of the bits that differ.

    Parameters
    ----------
    weights : array (b,), or (Q, b) for weights of each query; finite, 0 or more

    >>> from rankbits import BinaryCodes
    >>> from rankbits.index import HammingIndex
    >>> index = HammingIndex(2, kind="scan")
    >>> _ = index.add(BinaryCodes.from_bits([[0, 1], [1, 0]]))
    >>> distances, ids = index.search(
    ...     BinaryCodes.from_bits([[0, 0]]), k=2, rerank=weighted_bits([0.5, 2.0])
    ... )
    >>> distances.tolist(), ids.tolist()
    ([[0.5, 2.0]], [[1, 0]])
    """

    def __init__(self, weights: Any) -> None:
        self._weights = _real("weights", weights, "(b,) or (queries, b)", (1, 2))
        if (self._weights < 0).any():
            raise InputError(f"weights must be 0 or more, got {self._weights.min()}")

    def require(self, queries: Queries, n_bits: int) -> None:
        """Refuse weights that are not as many as bits, or as queries if each has its own."""
        _bits_of(queries)
        _require_shape("weights", np.atleast_2d(self._weights), len(queries), n_bits)

    def distances(self, candidates: Candidates) -> np.ndarray:
        """Sum over bytes of what the bits that differ weigh."""
        tables = np.broadcast_to(self._weights, (len(candidates.queries), self._weights.shape[-1]))
        masks = _bits_of(candidates.queries).packed
        return _sums(tables, np.zeros_like(tables), candidates, masks)


class asymmetric:  # noqa: N801 - as above
    """Real-valued queries against codes: distance = -<logits, code as -1 and +1>.

    The query keeps how sure it is of each bit, which its own code forgets. All items are scored, as
    by `search_real`, where that is as fast as collecting the usual pool of candidates first, and
    where `pool` asks for all of them.

    Parameters
    ----------
    logits : array (Q, b) or None, finite, whose signs are the bits; `hasher.project(X)` gives them
        None takes the weights of the queries of the search.

    >>> from rankbits import BinaryCodes
    >>> from rankbits.index import HammingIndex
    >>> index = HammingIndex(2, kind="scan")
    >>> _ = index.add(BinaryCodes.from_bits([[0, 1], [1, 0]]))
    >>> logits = np.array([[0.25, 3.0]])
    >>> distances, ids = index.search(
    ...     BinaryCodes.from_logits(logits), k=2, rerank=asymmetric(logits)
    ... )
    >>> distances.tolist(), ids.tolist()
    ([[-2.75, 2.75]], [[0, 1]])
    """

    items_per_candidate: ClassVar[int] = 256  # scanned in the time that one candidate takes

    def __init__(self, logits: Any = None) -> None:
        self._logits = None if logits is None else _real("logits", logits, "(queries, b)", (2,))

    def logits_of(self, queries: Queries) -> np.ndarray:
        """The logits that were given, or the weights of the queries."""
        if self._logits is not None:
            return self._logits
        if queries.weights is None:
            raise InputError("queries must have weights for asymmetric(); give it their logits")
        return _real("weights", queries.weights, "(queries, b)", (2,))

    def require(self, queries: Queries, n_bits: int) -> None:
        """Refuse logits that are not as many as queries and bits."""
        _require_shape("logits", self.logits_of(queries), len(queries), n_bits, is_each=True)

    def can_scan(self, queries: Queries) -> bool:
        """Whether scores by weights are finite, so that a scan of all items gives the same."""
        return have_finite_scores(self.logits_of(queries))

    def distances(self, candidates: Candidates) -> np.ndarray:
        """Sum over bytes of minus the logits of set bits and plus those of others."""
        logits = self.logits_of(candidates.queries)
        no_mask = np.zeros((len(logits), -(-logits.shape[1] // 8)), np.uint8)
        return _sums(-logits, logits, candidates, no_mask)


def _bits_of(queries: Queries) -> BinaryCodes:
    if queries.bits is None:
        raise InputError("queries must have bits for weighted_bits(), got weights only")
    return queries.bits


def _sums(
    if_set: np.ndarray, if_clear: np.ndarray, candidates: Candidates, masks: np.ndarray
) -> np.ndarray:
    """For each candidate the sum over bits of code ^ mask: if_set[q, bit] or if_clear[q, bit].

    The sums of each byte's 256 values are in a table, so that a candidate costs w additions, always
    in the same order: equal codes get equal scores, however queries are put together.
    """
    nearest, width = candidates.nearest, masks.shape[1]
    sums = np.empty(len(nearest.ids))
    for queries in _blocks(nearest.offsets, max(1, _BLOCK_CELLS // width)):
        offsets = nearest.offsets[queries.start : queries.stop + 1]
        rows = slice(offsets[0], offsets[-1])
        _native.score_bytes(
            np.ascontiguousarray(if_set[queries]),
            np.ascontiguousarray(if_clear[queries]),
            masks[queries],
            candidates.codes_of(nearest.ids[rows]).packed,
            offsets - offsets[0],
            sums[rows],
            candidates.n_threads,
        )
    return sums


def _blocks(offsets: np.ndarray, n: int) -> list[slice]:
    """Runs of queries that have about n candidates together, or one query each."""
    starts, last = [0], len(offsets) - 1
    while starts[-1] < last:
        reach = int(np.searchsorted(offsets, offsets[starts[-1]] + n, side="right")) - 1
        starts.append(min(max(reach, starts[-1] + 1), last))
    return [slice(*pair) for pair in pairwise(starts)]


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
