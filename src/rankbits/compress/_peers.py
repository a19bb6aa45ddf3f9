"""Peers at the same bytes: quantizers of faiss, and the raw signs that sentence-transformers takes.

They are measured as our own candidates are, with the same pools, and are never recommended: the
folder could not hold them. Where the similarity is the cosine, faiss gets vectors of length 1 and
ranks by inner product.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.compress._inputs import row_blocks
from rankbits.compress._lists import (
    NO_POOL,
    exact_distances,
    rerank,
    score_pools,
    without_own,
)
from rankbits.compress._measuring import TIMED_QUERIES
from rankbits.compress._task import Task
from rankbits.compress._truth import Truth

_RABITQ_FACTORS = 8  # bytes of an item beside its bits
_RQ_MOST_BYTES = 16  # beyond, its codebooks train for hours


@dataclass(frozen=True)
class Peer:
    """Somebody else's way to make codes.

    Attributes
    ----------
    name : str
        What results call it.
    factory : str
        What `faiss.index_factory` calls it, with {0} for the bytes; or "signs" or "RaBitQ".
    """

    name: str
    factory: str

    @property
    def query_kind(self) -> str:
        """Whether queries are compared as bits or by their numbers."""
        return "bits" if self.factory == "signs" else "real"

    def reason_to_leave_out(self, n_bytes: int, width: int) -> str:
        """Why it cannot make codes of so many bytes from vectors of this width; empty if it can."""
        if self.factory == "RaBitQ" and not 0 < 8 * (n_bytes - _RABITQ_FACTORS) <= width:
            return f"{_RABITQ_FACTORS} of its bytes are factors"
        if self.factory.startswith("RQ") and n_bytes > _RQ_MOST_BYTES:
            return "its codebooks would train for hours"
        if self.factory == "signs" and 8 * n_bytes > width:
            return f"it has one bit for each of {width} numbers"
        if "PQ" in self.factory and width % n_bytes:
            return f"it cuts a vector into {n_bytes} equal parts, and {width} numbers have none"
        return ""


PEERS = (
    Peer("faiss PQ", "PQ{0}x8"),
    Peer("faiss OPQ", "OPQ{0},PQ{0}x8"),
    Peer("faiss RQ", "RQ{0}x8"),
    Peer("faiss RaBitQ", "RaBitQ"),
    Peer("sentence-transformers binary", "signs"),
)


def require_faiss() -> None:
    """Fail before the work if faiss is not installed."""
    _check.extra("faiss", "peers", "interop")


def measure_peer(
    peer: Peer,
    n_bytes: int,
    task: Task,
    truth: Truth,
    training: np.ndarray,
    pools: Sequence[int],
    seed: int,
) -> dict[str, Any]:
    """Everything about one peer at one length, in the form of `measure_coder`."""
    reason = peer.reason_to_leave_out(n_bytes, task.items.shape[1])
    if reason:
        return {"left_out": reason}
    clock = time.perf_counter
    started = clock()
    order = np.random.default_rng((seed, 6)).permutation(training)
    index = _PeerIndex(peer, n_bytes, np.asarray(task.items[order]), task.similarity, seed)
    fitted = clock()
    for _, block in row_blocks(task.items):
        index.add(block)
    added = clock()
    measured = {
        "values": _values(index, task, truth, pools),
        "microseconds": _times(index, task, pools, truth.depth),
    }
    return {
        "bits": 8 * n_bytes,
        "model_bytes": index.model_bytes(len(task.items) * n_bytes),
        "kinds": {peer.query_kind: measured},
        "seconds": {"fit": fitted - started, "encode": added - fitted, "measure": clock() - added},
    }


class _PeerIndex:
    """A trained index of faiss, and what is done to rows before they reach it."""

    def __init__(
        self, peer: Peer, n_bytes: int, training: np.ndarray, similarity: str, seed: int
    ) -> None:
        import faiss

        self._has_unit_rows, self._n_bits = similarity == "cosine", 8 * n_bytes
        self._mean: np.ndarray | None = None
        rows = self._numbers(training)
        metric = faiss.METRIC_L2 if similarity == "l2" else faiss.METRIC_INNER_PRODUCT
        self._is_similarity = similarity != "l2" and peer.factory != "signs"
        self._is_binary = peer.factory == "signs"
        if self._is_binary:
            self._index: Any = faiss.IndexBinaryFlat(self._n_bits)
            return
        if peer.factory == "RaBitQ":
            self._learn_basis(rows, self._n_bits - 8 * _RABITQ_FACTORS, seed)
            self._index = faiss.IndexRaBitQ(self._basis.shape[1], metric)
        else:
            self._index = faiss.index_factory(rows.shape[1], peer.factory.format(n_bytes), metric)
        self._index.train(self._prepared(training))

    def add(self, rows: np.ndarray) -> None:
        self._index.add(self._prepared(rows))

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances, smaller is nearer, and ids."""
        distances, ids = self._index.search(self._prepared(queries), k)
        distances = distances.astype(np.float64)
        distances[ids < 0] = np.inf if not self._is_similarity else -np.inf
        return (-distances if self._is_similarity else distances), ids.astype(np.int64)

    def model_bytes(self, code_bytes: int) -> int:
        """What the index weighs beside the codes."""
        import faiss

        write = faiss.serialize_index_binary if self._is_binary else faiss.serialize_index
        return max(0, int(write(self._index).nbytes) - code_bytes)

    def _learn_basis(self, rows: np.ndarray, n_directions: int, seed: int) -> None:
        """Principal directions, turned at random, as many as leave room for the factors."""
        self._mean = rows.mean(axis=0)
        _, directions = np.linalg.eigh(np.cov((rows - self._mean).T))
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.standard_normal((n_directions, n_directions)))[0]
        self._basis = (directions[:, ::-1][:, :n_directions] @ turn).astype(np.float32)

    def _prepared(self, rows: np.ndarray) -> np.ndarray:
        """Rows as the index takes them."""
        if self._is_binary:
            return np.packbits(rows[:, : self._n_bits] > 0, axis=1)
        numbers = self._numbers(rows)
        if self._mean is not None:
            numbers = np.ascontiguousarray((numbers - self._mean) @ self._basis)
        return numbers

    def _numbers(self, rows: np.ndarray) -> np.ndarray:
        """Rows as float32, of length 1 where directions are compared."""
        numbers = np.ascontiguousarray(rows, np.float32)
        if not self._has_unit_rows:
            return numbers
        norms = np.linalg.norm(numbers, axis=1, keepdims=True)
        return np.ascontiguousarray(numbers / np.where(norms > 0, norms, 1))


def _values(
    index: _PeerIndex, task: Task, truth: Truth, pools: Sequence[int]
) -> dict[str, dict[str, list[float]]]:
    depth = min(max([*pools, 4 * truth.depth]) + 1, len(task.items))
    distances, ids = without_own(*index.search(task.queries, depth), task.own)
    return score_pools(truth, task, distances, ids, pools)


def _times(index: _PeerIndex, task: Task, pools: Sequence[int], k: int) -> dict[str, float]:
    """Microseconds of a query by pool, on one thread, as those of our own candidates."""
    import faiss

    queries, times = task.queries[:TIMED_QUERIES], {}
    n_threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    for pool in (None, *pools):
        started = time.perf_counter()
        _, ids = index.search(queries, pool or k)
        if pool is not None:
            exact = exact_distances(queries, task, ids)
            rerank(exact, ids, pool)
        times[str(pool or NO_POOL)] = 1e6 * (time.perf_counter() - started) / len(queries)
    faiss.omp_set_num_threads(n_threads)
    return times
