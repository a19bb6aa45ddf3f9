"""What a cluster costs and what it gains: each job on one machine, on one worker and on two.

Runs are interleaved and the best of several counts, with Ray started before. Serial means the
same function without Ray, on one thread. Synthetic shards are made on the fly in the workers.
Seconds of the wall suffer from whatever else the machine does; seconds of processors, of this
process and of all that Ray has started for it, do not.

    python benchmarks/scale.py overhead    # counting, one worker and two against serial
    python benchmarks/scale.py billion     # 10^9 items x 64 bits x 100 queries
    python benchmarks/scale.py encode      # 10^7 rows of 16 features into 64 bits
    python benchmarks/scale.py encode_wide # 2 * 10^6 rows of 384 features, by ITQ
    python benchmarks/scale.py search      # 10^8 codes in 2 shards against one index
    python benchmarks/scale.py messages    # what a task and a call cost, for the cost model
"""

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # workers import the shards below
os.environ |= {"RAY_worker_niceness": "0"}  # with Ray's 15, two priorities would be compared

import numpy as np

import rankbits
from rankbits import BinaryCodes, affinity, distributed
from rankbits.distributed import ShardFacts
from rankbits.index import Collection, HammingIndex

N_BITS, N_CLASSES = 64, 100
_POOL = 1 << 22  # codes that are drawn once in each worker; a range is a window of them, turned


@dataclass(frozen=True)
class SyntheticShard:
    """Codes that cost little to make: a pool of random words, XORed with a number of the block."""

    seed: int
    n: int

    @property
    def name(self) -> str:
        return f"synthetic shard {self.seed}"

    def describe(self) -> ShardFacts:
        return ShardFacts(self.n, N_BITS, labels="classes as integers")

    def read(self, start: int, stop: int) -> tuple[BinaryCodes, np.ndarray]:
        words = np.empty(stop - start, np.uint64)
        labels = np.empty(stop - start, np.uint8)
        for block in range(start // _POOL, -(-stop // _POOL)):
            first, last = max(start, block * _POOL), min(stop, (block + 1) * _POOL)
            inside = slice(first - block * _POOL, last - block * _POOL)
            turn = np.uint64((self.seed * 1_000_003 + block) * 0x9E3779B97F4A7C15 % 2**64)
            words[first - start : last - start] = pool()[0][inside] ^ turn
            labels[first - start : last - start] = pool()[1][inside]
        return BinaryCodes(words.view(np.uint8).reshape(-1, 8), N_BITS), labels


_pool: list[tuple[np.ndarray, np.ndarray]] = []


def pool() -> tuple[np.ndarray, np.ndarray]:
    if not _pool:
        rng = np.random.default_rng(0)
        words = rng.integers(0, 2**64, _POOL, np.uint64)
        _pool.append((words, rng.integers(0, N_CLASSES, _POOL).astype(np.uint8)))
    return _pool[0]


def query_side(n: int = 100) -> tuple[BinaryCodes, np.ndarray]:
    rng = np.random.default_rng(1)
    codes = BinaryCodes(rng.integers(0, 256, (n, N_BITS // 8), np.uint8), N_BITS)
    return codes, rng.integers(0, N_CLASSES, n)


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    value = function()
    return time.perf_counter() - began, value


def family_cpu() -> float:
    """Seconds of processors that the threads of this process and its descendants have had."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    nanoseconds = 0
    for pid in family:
        for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                nanoseconds += int(thread.read_text().split()[0])
    return nanoseconds / 1e9


def idle_rate() -> float:
    """Seconds of processors that Ray takes in a second in which nothing is done."""
    cpu, began = family_cpu(), time.perf_counter()
    time.sleep(3.0)
    return (family_cpu() - cpu) / (time.perf_counter() - began)


def best_of(repeats: int, runs: dict[str, Callable[[], Any]], truth: np.ndarray) -> dict[str, Any]:
    """The best wall seconds and the mean processor seconds of each run, one after the other."""
    walls: dict[str, list[float]] = {name: [] for name in runs}
    cpus: dict[str, list[float]] = {name: [] for name in runs}
    idle = idle_rate()
    for _ in range(2 * repeats):
        for name, run in runs.items():
            cpu = family_cpu()
            took, value = seconds(run)
            walls[name].append(took)
            cpus[name].append(family_cpu() - cpu - idle * took)
            assert np.array_equal(value.counts, truth)
    figures = {f"{name}_s": min(walls[name]) for name in runs}
    middle = {f"{name}_median_s": float(np.median(walls[name])) for name in runs}
    processors = {f"{name}_cpu_s": float(np.mean(cpus[name])) for name in runs}
    return {**figures, **middle, **processors, "idle": idle}


def report(**figures: Any) -> None:
    rounded = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in figures.items()}
    print(json.dumps(rounded), flush=True)


def saved_shards(folder: str, n_items: int, n_shards: int) -> tuple[list[str], list[str]]:
    """Codes and labels in files, as users have them."""
    paths, labels = [], []
    for i in range(n_shards):
        codes, classes = SyntheticShard(i, n_items // n_shards).read(0, n_items // n_shards)
        paths.append(f"{folder}/codes{i}.npy")
        labels.append(f"{folder}/labels{i}.npy")
        codes.save(paths[-1])
        np.save(labels[-1], classes)
    return paths, labels


def overhead(folder: str, repeats: int, n_items: int, n_queries: int) -> None:
    """Counting files: serial, one worker, two workers, at growing numbers of pairs."""
    queries, classes = query_side(n_queries or 100)
    for n in [n_items] if n_items else (1_000_000, 10_000_000):
        paths, labels = saved_shards(folder, n, 4)

        def serial(paths: list[str] = paths, labels: list[str] = labels) -> Any:
            shards = [
                (BinaryCodes.load(path), affinity.classes(classes, np.load(y, mmap_mode="r")))
                for path, y in zip(paths, labels, strict=True)
            ]
            return rankbits.evaluation.count_shards(queries, shards, n_threads=1)

        def parallel(paths: list[str] = paths, labels: list[str] = labels) -> Any:
            return distributed.count_ties(
                queries, paths, query_labels=classes, database_labels=labels
            )

        truth, best = serial().counts, {}
        for n_workers in (1, 2):
            with distributed.connect(n_workers=n_workers):
                assert np.array_equal(parallel().counts, truth)
                runs = {"serial": serial, f"workers_{n_workers}": parallel}
                best = {**best_of(repeats, runs, truth), **best}
        report(
            job="count",
            pairs=n * len(queries),
            **best,
            overhead=best["workers_1_s"] / best["serial_s"] - 1,
            overhead_cpu=best["workers_1_cpu_s"] / best["serial_cpu_s"] - 1,
            two_against_one=best["workers_1_s"] / best["workers_2_s"],
            load=os.getloadavg()[0],
        )


def billion(folder: str, repeats: int, n_items: int, n_queries: int) -> None:
    """A billion items, made on the fly, on two workers or as many as `SCALE_WORKERS` says."""
    n_workers = int(os.environ.get("SCALE_WORKERS", "2"))
    n_items, n_shards = n_items or 10**9, 16
    queries, classes = query_side(n_queries or 100)
    shards = [SyntheticShard(i, n_items // n_shards) for i in range(n_shards)]
    with distributed.connect(n_workers=n_workers):
        distributed.count_ties(queries, [SyntheticShard(0, 1000)] * 2, query_labels=classes)
        cpu = family_cpu()
        took, hist = seconds(lambda: distributed.count_ties(queries, shards, query_labels=classes))
        cpu = family_cpu() - cpu
    assert int(hist.counts[0].sum()) == n_items
    result = rankbits.evaluate_histogram(hist, ["AP", "nDCG@100", "P@1000"])
    report(
        job="count",
        items=n_items,
        queries=len(queries),
        workers=n_workers,
        s=took,
        cpu_s=cpu,
        pairs_per_cpu_s=n_items * len(queries) / cpu,
        load=os.getloadavg()[0],
        metrics=result.mean,
    )


def encode(folder: str, repeats: int, n_items: int, n_queries: int) -> None:
    """Ten million rows in eight files, by one worker and by two."""
    encode_rows(folder, repeats, n_items or 10**7, 16, "lsh")


def encode_wide(folder: str, repeats: int, n_items: int, n_queries: int) -> None:
    """Rows as wide as embeddings of texts, encoded by ITQ."""
    encode_rows(folder, repeats, n_items or 2 * 10**6, 384, "itq")


def encode_rows(folder: str, repeats: int, n_items: int, n_features: int, method: str) -> None:
    """Rows in eight files, by one worker and by two in turns; the best of several runs each."""
    rng, n_files = np.random.default_rng(2), 8
    n_rows = n_items // n_files
    block = rng.standard_normal((n_rows, n_features), np.float32)
    model = rankbits.methods.get(method, n_bits=N_BITS, random_state=0).fit(block[:20_000])
    model.save(f"{folder}/model")
    paths = [f"{folder}/rows{i}.npy" for i in range(n_files)]
    for path in paths:
        np.save(path, block)
    expected = model.encode(block)
    del block
    times: dict[int, list[float]] = {1: [], 2: []}
    cpus: dict[int, list[float]] = {1: [], 2: []}
    for n_workers in (1, 2, 1, 2):
        with distributed.connect(n_workers=n_workers):
            distributed.encode(f"{folder}/model", paths[:n_workers], f"{folder}/warm")
            shutil.rmtree(f"{folder}/warm")
            for _ in range(repeats):
                cpu = family_cpu()
                took, done = seconds(
                    lambda: distributed.encode(f"{folder}/model", paths, f"{folder}/codes")
                )
                times[n_workers].append(took)
                cpus[n_workers].append(family_cpu() - cpu)
                assert all(BinaryCodes.load(path) == expected for path in done.files)
                shutil.rmtree(f"{folder}/codes")
    best = {n_workers: min(walls) for n_workers, walls in times.items()}
    report(
        job="encode",
        rows=n_files * n_rows,
        features=n_features,
        method=method,
        workers_1_s=best[1],
        workers_2_s=best[2],
        workers_1_median_s=float(np.median(times[1])),
        workers_2_median_s=float(np.median(times[2])),
        workers_1_cpu_s=min(cpus[1]),
        workers_2_cpu_s=min(cpus[2]),
        two_against_one=best[1] / best[2],
        rows_per_s=n_files * n_rows / best[2],
        load=os.getloadavg()[0],
    )


def search(folder: str, repeats: int, n_items: int, n_queries: int) -> None:
    """A hundred million codes in two shards, and in one index with as many threads."""
    n_items, n_block = n_items or 100_000_000, 5_000_000
    whole, cut = f"{folder}/whole", f"{folder}/cut"
    distributed.create_index(cut, N_BITS, 2, by="range", bounds=[n_items // 2])
    shard = SyntheticShard(0, n_items)
    with Collection.create(whole, N_BITS) as one, distributed.LocalShards(cut) as two:
        for start in range(0, n_items, n_block):
            codes, _ = shard.read(start, start + n_block)
            one.add(codes)
            two.add(codes)
        one.compact()
        two.compact()
    queries, _ = query_side(256)
    weights = np.random.default_rng(3).standard_normal((256, N_BITS))
    single = HammingIndex.load(whole, kind="scan")
    with (
        distributed.connect(n_workers=2),
        distributed.index(cut, kind="scan", n_threads=1) as sharded,
    ):
        for name, run_one, run_two in (
            ("search", lambda i: i.search(queries, 10), None),
            ("search_real", lambda i: i.search_real(weights, 10), None),
        ):
            figures = {"one_thread_s": 1e9, "two_threads_s": 1e9, "two_shards_s": 1e9}
            run_two = run_two or run_one
            for _ in range(repeats):
                for key, index, n_threads in (
                    ("one_thread_s", single, 1),
                    ("two_threads_s", single, 2),
                    ("two_shards_s", sharded, None),
                ):
                    if n_threads is not None:
                        single.configure(n_threads=n_threads)
                    took, answer = seconds(lambda index=index, run=run_two: run(index))
                    figures[key] = min(figures[key], took)
                    if index is single:
                        expected = answer
                assert all(np.array_equal(a, b) for a, b in zip(answer, expected, strict=True))
            ratio = figures["two_threads_s"] / figures["two_shards_s"]
            gain = figures["one_thread_s"] / figures["two_shards_s"]
            report(
                job=name,
                codes=n_items,
                queries=256,
                **figures,
                shards_against_two_threads=ratio,
                shards_against_one_thread=gain,
            )
        lone, _ = seconds(lambda: [sharded.search(queries[:1], 10) for _ in range(5)])
        report(job="search", queries=1, two_shards_ms=1e3 * lone / 5)


def no_work() -> None:
    """What Ray itself costs: a task without arguments, work or result."""


def messages(folder: str, repeats: int, n_items: int, n_queries: int) -> None:
    """Seconds of an empty task, of adding tables, and of a call of a holder."""
    queries, classes = query_side()
    with distributed.connect(n_workers=2) as ray:
        nothing = ray.remote(no_work)
        bare = [seconds(lambda: ray.get(nothing.remote()))[0] for _ in range(200)]
        report(job="messages", seconds_of_an_empty_task_of_ray=float(np.median(bare)))
        one = [SyntheticShard(0, 16)]
        for _ in range(20):
            distributed.count_ties(queries, one, query_labels=classes)
        calls = [
            seconds(lambda: distributed.count_ties(queries, one, query_labels=classes))[0]
            for _ in range(50)
        ]
        report(job="messages", seconds_of_a_count_of_nothing=float(np.median(calls)))
        tiny = [SyntheticShard(i, 16) for i in range(1000)]
        distributed._ranges._USUAL_PAIRS = 1  # a task for each
        distributed.count_ties(queries[:1], tiny[:50], query_labels=classes[:1])
        took, _ = seconds(
            lambda: distributed.count_ties(queries[:1], tiny, query_labels=classes[:1])
        )
        report(job="messages", tasks=1000, seconds_per_task=took / 1000)
        for n_queries in (100, 1000, 10_000):
            table = (np.full((n_queries, N_BITS + 1, 2), 10**6, np.uint32), np.arange(2))
            adding = ray.remote(distributed._count_tasks.add_tables)
            ref = ray.put(table)
            ray.get(adding.remote(*[ref] * 8))
            took, _ = seconds(lambda ref=ref, adding=adding: ray.get(adding.remote(*[ref] * 8)))
            report(job="messages", table_mb=table[0].nbytes / 1e6, seconds_for_8=took)
    distributed.create_index(f"{folder}/small", N_BITS, 2)
    with distributed.connect(n_workers=2), distributed.index(f"{folder}/small") as index:
        for _ in range(20):
            index.search(queries[:1], 1)
        took, _ = seconds(lambda: [index.search(queries[:1], 1) for _ in range(200)])
        report(job="messages", shards=2, seconds_per_search=took / 200)


JOBS = {f.__name__: f for f in (overhead, billion, encode, encode_wide, search, messages)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--items", type=int, default=0, help="items or rows, instead of the usual")
    parser.add_argument("--queries", type=int, default=0, help="queries of a count")
    parser.add_argument("--folder", help="where to put files, which are removed afterwards")
    options = parser.parse_args()
    import scale  # by its name: shards must be of a module that workers can import

    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        scale.JOBS[options.job](place, options.repeats, options.items, options.queries)
