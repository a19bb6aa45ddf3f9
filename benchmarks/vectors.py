"""Speed and memory of evaluating float vectors, against a NumPy product and argsort.

The contenders take turns in one process, one thread each unless --threads says otherwise, and the
best of several rounds counts. NumPy's time ends with the sorted ids: reading metrics from them
would come on top. It computes in single precision, as the vectors are, which does not tell near
scores apart; --double adds NumPy in double precision, whose order is as exact as ours. Memory is
the peak of the resident set during the call, beyond what was resident before. --cpu counts seconds
of the processor instead of the clock's, for a machine that is busy.

    python benchmarks/vectors.py [--items 1000000] [--queries 100] [--rounds 1] [--threads 1]
        [--double] [--cpu] [--json FILE]
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    threads = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
    os.environ[variable] = threads  # before NumPy reads them

import numpy as np

from rankbits import affinity, evaluate_vectors
from rankbits.affinity import Affinity

N_FEATURES = 384
N_JUDGED = 50
N_CLASSES = (100, 10)
METRICS = ["AP", "nDCG@10"]
NUMPY, NUMPY_DOUBLE = "numpy product and argsort", "the same in double precision"


def draw(n_queries: int, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Random vectors of length 1."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n_queries + n_items, N_FEATURES), dtype=np.float32)
    for start in range(0, len(rows), 1 << 16):
        part = rows[start : start + (1 << 16)]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return rows[:n_queries], rows[n_queries:]


def affinities(n_queries: int, n_items: int) -> dict[str, Affinity]:
    """Few judged items for each query, and classes of a hundredth and a tenth of the items."""
    rng = np.random.default_rng(1)
    judged = [
        (query, item, 1)
        for query in range(n_queries)
        for item in rng.choice(n_items, N_JUDGED, replace=False)
    ]
    cases: dict[str, Affinity] = {
        f"{N_JUDGED} judged items a query": affinity.judgements(judged, n_queries, n_items)
    }
    for n_classes in N_CLASSES:
        labels = (rng.integers(0, n_classes, n) for n in (n_queries, n_items))
        cases[f"{n_classes} classes"] = affinity.classes(*labels)
    return cases


def sort_with_numpy(queries: np.ndarray, database: np.ndarray, dtype: str = "f4") -> None:
    """All rankings, a few queries at a time so that scores and orders fit into memory."""
    for start in range(0, len(queries), 10):
        some = queries[start : start + 10].astype(dtype)
        scores = np.empty((len(some), len(database)), dtype)
        for first in range(0, len(database), 1 << 16):
            rows = slice(first, first + (1 << 16))
            scores[:, rows] = some @ database[rows].astype(dtype, copy=False).T
        np.argsort(-scores, axis=1)


def measured(call: Callable[[], object], *, by_processor: bool) -> tuple[float, float]:
    """Seconds of a call, and the peak of the resident set beyond that before it, in MB."""
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    clock = time.process_time if by_processor else time.perf_counter
    before, start = _status("VmRSS"), clock()
    call()
    seconds = clock() - start
    return seconds, (_status("VmHWM") - before) / 1024


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=10**6)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    queries, database = draw(options.queries, options.items)
    calls: dict[str, Callable[[], object]] = {NUMPY: lambda: sort_with_numpy(queries, database)}
    if options.double:
        calls[NUMPY_DOUBLE] = lambda: sort_with_numpy(queries, database, "f8")
    for name, levels in affinities(options.queries, options.items).items():
        calls[name] = lambda levels=levels: evaluate_vectors(
            queries, database, levels, METRICS, n_threads=options.threads
        )
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(options.rounds):
        for name, call in calls.items():
            runs[name].append(measured(call, by_processor=options.cpu))
    best = {name: min(seconds for seconds, _ in results) for name, results in runs.items()}
    numpy_seconds, double_seconds = best.pop(NUMPY), best.pop(NUMPY_DOUBLE, None)
    threads = f"{options.threads} thread" + ("s" if options.threads > 1 else "")
    print(f"{options.queries} queries, {options.items} items of {N_FEATURES} float32, {threads}")
    print(f"{NUMPY}: {numpy_seconds:.2f} s")
    if double_seconds is not None:
        print(f"{NUMPY_DOUBLE}: {double_seconds:.2f} s")
    rows = {}
    for name, own in best.items():
        extra = max(megabytes for _, megabytes in runs[name])
        ratio = numpy_seconds / own
        rows[name] = {"seconds": own, "against_numpy": ratio, "extra_megabytes": extra}
        print(f"rankbits, {name}: {own:.2f} s, {ratio:.1f} times as fast, {extra:.0f} MB more")
    if options.json:
        options.json.write_text(
            json.dumps({"numpy_seconds": numpy_seconds, "rows": rows}, indent=2)
        )


if __name__ == "__main__":
    main()
