"""Re-ranking of candidates by their original vectors, with rankbits and with NumPy."""

import numpy as np

from rankbits import BinaryCodes
from rankbits.codes import Queries
from rankbits.index import Candidates, vectors
from rankbits.index.reranking.base import reranked
from rankbits.index.results import Ragged
from search_jobs.run import Run
from search_jobs.timing import in_turns, table

N_DIMENSIONS, POOL_SIZE, K = 384, 1000, 10


def reranking(run: Run) -> None:
    n, n_queries = run.size(100_000), run.queries(256)
    rng = np.random.default_rng(0)
    items = rng.standard_normal((n, N_DIMENSIONS)).astype(np.float32)
    queries = rng.standard_normal((n_queries, N_DIMENSIONS)).astype(np.float32)
    pool = np.sort(rng.integers(0, n, (n_queries, POOL_SIZE)), axis=1)
    offsets, ids = np.arange(n_queries + 1) * POOL_SIZE, pool.ravel()
    nearest = Ragged(offsets, np.zeros(len(ids), np.int32), ids)
    codes = BinaryCodes(np.zeros((n_queries, 1), np.uint8), 8)

    def with_rankbits(n_threads: int) -> object:
        candidates = Candidates(Queries(codes), nearest, lambda _: codes, n_threads)
        return reranked([candidates], vectors(items, queries, "l2"), K)

    calls = {
        "NumPy": (lambda: rescore_with_numpy(items, queries, pool), n_queries),
        "one": (lambda: with_rankbits(1), n_queries),
        "two": (lambda: with_rankbits(2), n_queries),
    }
    timings = in_turns(calls, run.rounds)
    numpy_best = timings["NumPy"].best
    rows = [
        [name, f"{1e6 * timing.best:.0f}", f"{numpy_best / timing.best:.1f}×"]
        for name, timing in timings.items()
    ]
    title = f"Re-ranking pools of {POOL_SIZE} vectors of {N_DIMENSIONS} floats, {n_queries} queries"
    table(title, ["threads", "µs a query", "times NumPy"], rows)
    times = numpy_best / timings["one"].best
    run.record("reranking", times=times)
    print(f"\nOne thread is {times:.1f} times NumPy; target {run.judge(times, 5.0)}")


def rescore_with_numpy(items: np.ndarray, queries: np.ndarray, pool: np.ndarray) -> np.ndarray:
    distances = np.empty(pool.shape)
    for row, query in enumerate(queries):
        differences = items[pool[row]].astype(np.float64) - query
        distances[row] = np.sqrt(np.square(differences).sum(axis=1))
    nearest = np.argpartition(distances, K, axis=1)[:, :K]
    return np.take_along_axis(distances, nearest, axis=1)
