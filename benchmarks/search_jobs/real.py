"""Real-valued queries against codes: our scan, and what else ranks items of as many bytes.

Items are rows of independent standard normal numbers, one for each bit, and codes are their signs.
Queries are such rows too; the Hamming scan and faiss's flat index get the signs of the queries.
"tables" are queries of 16 random numbers for every four bits, as additive codes have them.
"""

from collections.abc import Callable

import numpy as np

from rankbits import BinaryCodes
from rankbits.index import HammingIndex
from search_jobs import peers
from search_jobs.run import MILLION, TEN_MILLION, Run
from search_jobs.timing import Timing, draw, in_turns, rate, ratio, table

TARGETS = {
    "faiss flat": 3.5,
    "rankbits scan": 0.45,
    "tables": None,
    "faiss PQFastScan": 1.0,
    "NumPy": 20.0,
}
FLAT_BITS = 64  # the length that the target against faiss flat is about
TRAINING_ROWS = 20_000
NUMPY_QUERIES = 16
BLOCK_ROWS = 1 << 17


def real(run: Run) -> None:
    for n_bits in (32, 64, 128):
        compare(run, run.size(MILLION), n_bits, (10, 100))


def compare(run: Run, n: int, n_bits: int, ks: tuple[int, ...]) -> None:
    """One table: everyone's speed at each k."""
    rng = np.random.default_rng(0)
    items = rng.standard_normal((n, n_bits), np.float32)
    weights = rng.standard_normal((run.queries(256), n_bits), np.float32)
    tables = rng.standard_normal((len(weights), 4 * n_bits), np.float32)
    codes, query_codes = BinaryCodes.from_logits(items), BinaryCodes.from_logits(weights)
    index = HammingIndex(n_bits, "scan", n_threads=1)
    index.add(codes)
    flat = quantizer = None
    if "faiss" in run.packages:
        flat = peers.faiss_flat(run.packages["faiss"], codes.packed)
        quantizer = fast_scan(run.packages["faiss"], items)
    signs = np.where(items > 0, np.float32(1), np.float32(-1))
    rows = []
    for k in ks:
        calls = {
            "rankbits real": (lambda k=k: index.search_real(weights, k), len(weights)),
            "tables": (lambda k=k: index.search_real(tables, k), len(weights)),
            "rankbits scan": (lambda k=k: index.search(query_codes, k), len(weights)),
            "NumPy": (lambda k=k: search_with_numpy(signs, weights, k), NUMPY_QUERIES),
        }
        if flat is not None:
            calls["faiss flat"] = (lambda k=k: flat.search(query_codes.packed, k), len(weights))
            calls["faiss PQFastScan"] = (lambda k=k: quantizer.search(weights, k), len(weights))
        timings = in_turns(calls, run.rounds)
        rows.append(row_of(run, n, n_bits, k, timings))
    title = f"Real-valued queries, {n:,} codes of {n_bits} bits, Gp/s, one thread"
    columns = ["k", "real", *(part for name in TARGETS for part in (name, "real / it", "target"))]
    table(title, columns, rows)


def row_of(run: Run, n: int, n_bits: int, k: int, timings: dict[str, Timing]) -> list[str]:
    ours = timings["rankbits real"]
    times = {name: timing.best / ours.best for name, timing in timings.items()}
    seconds = {name: timing.best for name, timing in timings.items()}
    run.record("real", n=n, bits=n_bits, k=k, seconds=seconds, times=times)
    row = [str(k), rate(ours, n)]
    for name, target in TARGETS.items():
        is_judged = name != "faiss flat" or n_bits == FLAT_BITS
        judgement = run.judge(times.get(name), target if is_judged else None)
        row += [rate(timings.get(name), n), ratio(timings.get(name), ours), judgement]
    return row


def fast_scan(faiss, items: np.ndarray):
    """Four bits for every four numbers: as many bytes as our codes."""
    n_numbers = items.shape[1]
    index = faiss.IndexPQFastScan(n_numbers, n_numbers // 4, 4, faiss.METRIC_INNER_PRODUCT)
    index.train(items[:TRAINING_ROWS])
    for start in range(0, len(items), BLOCK_ROWS):
        index.add(items[start : start + BLOCK_ROWS])
    return index


def search_with_numpy(signs: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    """A matrix product of a few queries, and the k largest of each row."""
    scores = weights[:NUMPY_QUERIES] @ signs.T
    best = np.argpartition(-scores, k, axis=1)[:, :k]
    best_scores = np.take_along_axis(scores, best, axis=1)
    return np.take_along_axis(best, np.argsort(-best_scores, axis=1), axis=1)


def growth(run: Run) -> None:
    """Time a query at a hundred thousand, a million and ten million codes of 64 bits."""
    weights = np.random.default_rng(0).standard_normal((run.queries(128), 64))
    sizes = [run.size(n) for n in (MILLION // 10, MILLION, TEN_MILLION)]
    timings = in_turns({str(n): growth_call(n, weights) for n in sizes}, run.rounds)
    seconds = {n: timings[str(n)].best for n in sizes}
    smallest = seconds[sizes[0]] / sizes[0]
    times = {n: seconds[n] / n / smallest for n in sizes}
    run.record("real growth", seconds=seconds, times=times)
    rows = [
        [f"{n:,}", f"{1e6 * seconds[n]:.1f}", f"{1e12 * seconds[n] / n:.0f}", f"{times[n]:.2f}×"]
        for n in sizes
    ]
    title = f"Real-valued queries against codes of 64 bits, k = 10, {len(weights)} at a time"
    table(title, ["items", "µs a query", "ps an item", "the smallest"], rows)


def growth_call(n: int, weights: np.ndarray) -> tuple[Callable[[], object], int]:
    """A search of n codes by all weights; few codes are searched several times."""
    index = HammingIndex(64, n_threads=1)
    index.add(draw("uniform", n, 1, 64)[1])
    n_times = max(1, MILLION // n)

    def search() -> None:
        for _ in range(n_times):
            index.search_real(weights, 10)

    return search, n_times * len(weights)
