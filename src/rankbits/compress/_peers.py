"""Peers at the same bytes: quantizers of faiss, and the raw signs that sentence-transformers takes.

They are measured as our own candidates are, with the same pools, and are never recommended: the
folder could not hold them. faiss takes a similarity of its own, the inner product of vectors that
are scaled to length 1 where the similarity is the cosine.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.compress._inputs import row_blocks
from rankbits.compress._lists import exact_distances, rerank, score_lists, without_own
from rankbits.compress._task import Task
from rankbits.compress._truth import Truth
from rankbits.histogram import VectorDistances

_TIMED_QUERIES = 32
_RABITQ_FACTORS = 8  # bytes of an item beside its bits
_RQ_MOST_BYTES = 16  # beyond, its codebooks train for hours


@dataclass(frozen=True)
class Peer:
    """A way to make codes of somebody else.

    Attributes
    ----------
    name : str
        What results call it.
    factory : str
        What `faiss.index_factory` calls it; {0} stands for the bytes.
    """

    name: str
    factory: str


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
    started = time.perf_counter()
    order = np.random.default_rng((seed, 6)).permutation(training)
    reason = _reason_to_leave_out(peer, n_bytes, task)
    if reason:
        return {"left_out": reason}
    rows = _prepared(np.asarray(task.items[order]), task.similarity)
    index = _index(peer, n_bytes, rows, task.similarity, seed)
    fitted = time.perf_counter()
    for _, block in row_blocks(task.items):
        index.add(_prepared(block, task.similarity))
    added = time.perf_counter()
    kind = "bits" if peer.factory == "signs" else "real"
    measured = _measure(index, task, truth, pools)
    return {
        "bits": 8 * n_bytes,
        "model_bytes": index.model_bytes(len(task.items) * n_bytes),
        "kinds": {kind: measured},
        "seconds": {
            "fit": fitted - started,
            "encode": added - fitted,
            "measure": time.perf_counter() - added,
        },
    }


class _FaissIndex:
    """An index of faiss, behind whatever turns rows before they reach it."""

    def __init__(self, index: Any, turn: Callable[[np.ndarray], np.ndarray]) -> None:
        self.index, self.turn = index, turn

    def add(self, rows: np.ndarray) -> None:
        self.index.add(np.ascontiguousarray(self.turn(rows)))

    def search(self, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        distances, ids = self.index.search(np.ascontiguousarray(self.turn(rows)), k)
        is_similarity = getattr(self.index, "metric_type", 1) == 0  # METRIC_INNER_PRODUCT
        distances = distances.astype(np.float64)
        return (-distances if is_similarity else distances), ids.astype(np.int64)

    def model_bytes(self, code_bytes: int) -> int:
        import faiss

        is_binary = isinstance(self.index, faiss.IndexBinary)
        write = faiss.serialize_index_binary if is_binary else faiss.serialize_index
        return max(0, int(write(self.index).nbytes) - code_bytes)


def _index(peer: Peer, n_bytes: int, rows: np.ndarray, similarity: str, seed: int) -> _FaissIndex:
    """A trained index without items."""
    import faiss

    width = rows.shape[1]
    metric = faiss.METRIC_L2 if similarity == "l2" else faiss.METRIC_INNER_PRODUCT
    if peer.factory == "signs":
        return _FaissIndex(
            faiss.IndexBinaryFlat(8 * n_bytes),
            lambda block: np.packbits(block[:, : 8 * n_bytes] > 0, axis=1),
        )
    if peer.factory == "RaBitQ":
        n_directions = 8 * (n_bytes - _RABITQ_FACTORS)
        mean = rows.mean(axis=0)
        _, directions = np.linalg.eigh(np.cov((rows - mean).T))
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.standard_normal((n_directions, n_directions)))[0]
        basis = (directions[:, ::-1][:, :n_directions] @ turn).astype(np.float32)
        index = faiss.IndexRaBitQ(n_directions, metric)
        index.train(np.ascontiguousarray((rows - mean) @ basis))
        return _FaissIndex(index, lambda block: (block - mean) @ basis)
    index = faiss.index_factory(width, peer.factory.format(n_bytes), metric)
    index.train(rows)
    return _FaissIndex(index, lambda block: block)


def _measure(index: _FaissIndex, task: Task, truth: Truth, pools: Sequence[int]) -> dict[str, Any]:
    import faiss

    queries = _prepared(task.queries, task.similarity)
    depth = min(max([*pools, 4 * truth.depth]) + 1, len(task.items))
    distances, ids = index.search(queries, depth)
    distances[ids < 0] = np.inf
    distances, ids = without_own(distances, ids, task.own)
    source = VectorDistances(task.queries, task.items, task.similarity)
    exact = exact_distances(source, ids)
    values = {"none": score_lists(truth, distances, ids)}
    for pool in pools:
        values[str(pool)] = score_lists(truth, *rerank(exact, ids, pool))
    timed = queries[:_TIMED_QUERIES]
    times = {}
    n_threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    for pool in (None, *pools):
        started = time.perf_counter()
        _, found = index.search(timed, pool or truth.depth)
        if pool is not None:
            part = VectorDistances(task.queries[: len(timed)], task.items, task.similarity)
            rerank(exact_distances(part, found), found, pool)
        times[str(pool or "none")] = 1e6 * (time.perf_counter() - started) / len(timed)
    faiss.omp_set_num_threads(n_threads)
    listed = {
        pool: {name: column.tolist() for name, column in row.items()}
        for pool, row in values.items()
    }
    return {"values": listed, "microseconds": times}


def _reason_to_leave_out(peer: Peer, n_bytes: int, task: Task) -> str:
    width = task.items.shape[1]
    if peer.factory == "RaBitQ" and not 0 < 8 * (n_bytes - _RABITQ_FACTORS) <= width:
        return f"{_RABITQ_FACTORS} of its bytes are factors"
    if peer.factory.startswith("RQ") and n_bytes > _RQ_MOST_BYTES:
        return "its codebooks would train for hours"
    if peer.factory == "signs" and 8 * n_bytes > width:
        return f"it has one bit for each of {width} numbers"
    if "PQ" in peer.factory and width % n_bytes:
        return f"it cuts {width} numbers into {n_bytes} equal parts, which is not possible"
    return ""


def _prepared(rows: np.ndarray, similarity: str) -> np.ndarray:
    """Rows as faiss takes them, of length 1 where directions are compared."""
    wide = np.ascontiguousarray(rows, np.float32)
    if similarity != "cosine":
        return wide
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.ascontiguousarray(wide / np.where(norms > 0, norms, 1))
