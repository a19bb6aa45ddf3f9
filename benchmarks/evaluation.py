"""Speed of tie-aware evaluation against what people use, and against this machine's own bounds.

Contenders of one case take turns in one process, one thread each unless said, and the best of
several rounds counts. A slow contender runs on a few of the queries. Rates are (query, item) pairs
a second.

    python benchmarks/evaluation.py [--rounds 5] [--sizes 59000 1000000] [--kinds class learned]
        [--json out/bench.json]
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy reads them

import machine_bounds
import numpy as np

import rankbits
from rankbits import BinaryCodes, affinity, metrics
from rankbits._native import _kernels

N_QUERIES = 1000
GIGA = 1e9
NOISE = 0.031  # chance of a bit to differ from its class's, at 32 bits
# Kinds of data, each with its numbers of labels.
KINDS = {"class": (10, 100), "few codes": (100,), "learned": (10,), "multi-label": (21, 80)}


@dataclass
class Data:
    """Codes and labels of one case, as packed codes and as what the usual code takes."""

    queries: BinaryCodes
    database: BinaryCodes
    query_y: np.ndarray  # multi-hot, one-hot for classes
    database_y: np.ndarray

    def signs(self) -> tuple[np.ndarray, np.ndarray]:
        return tuple(
            2 * codes.bits().astype(np.float32) - 1 for codes in (self.queries, self.database)
        )


def draw(
    n: int,
    n_bits: int,
    n_labels: int,
    is_multi: bool,
    n_codes: int | None = None,
    is_learned: bool = False,
) -> Data:
    """Random codes and labels.

    With n_codes, items fall on that many codes. Codes as learned ones lie about one center for each
    class, so that 59,000 items have about 9,100 of them, as talr-ap gives CIFAR-10 at 32 bits.
    """
    rng = np.random.default_rng(0)
    query_bits = rng.integers(0, 2, (N_QUERIES, n_bits), dtype=np.uint8)
    bits = rng.integers(0, 2, (n_codes or n, n_bits), dtype=np.uint8)
    labels = [rng.integers(0, n_labels, size) for size in (N_QUERIES, n)]
    hot = [np.eye(n_labels, dtype=np.float32)[y] for y in labels]
    if is_multi:
        hot = [
            (rng.random((size, n_labels)) < 2 / n_labels).astype(np.float32)
            for size in (N_QUERIES, n)
        ]
    if is_learned:
        centers = rng.integers(0, 2, (n_labels, n_bits), dtype=np.uint8)
        query_bits, bits = (
            centers[y] ^ (rng.random((len(y), n_bits)) < NOISE * 32 / n_bits) for y in labels
        )
    elif n_codes:
        bits = bits[labels[1] * (n_codes // n_labels) + rng.integers(0, n_codes // n_labels, n)]
    return Data(BinaryCodes.from_bits(query_bits), BinaryCodes.from_bits(bits), *hot)


def numpy_way(signs: tuple[np.ndarray, np.ndarray], data: Data, n_queries: int) -> float:
    """Mean AP by matmul, argsort and a loop over queries: what most hashing code does."""
    queries, database = signs
    total = 0.0
    for query, labels in zip(queries[:n_queries], data.query_y[:n_queries], strict=True):
        relevant = (labels @ data.database_y.T > 0).astype(np.float32)
        distance = 0.5 * (queries.shape[1] - query @ database.T)
        relevant = relevant[np.argsort(distance)]
        n_relevant = int(relevant.sum())
        if n_relevant:
            ranks = np.asarray(np.where(relevant == 1)) + 1.0
            total += np.mean(np.linspace(1, n_relevant, n_relevant) / ranks)
    return total / n_queries


def torch_way(data: Data, n_queries: int) -> Callable[[], object] | None:
    """Tie histograms by matmul and bincount, 16 queries at a time; None without torch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    queries, database = (torch.from_numpy(signs) for signs in data.signs())
    query_y, database_y = torch.from_numpy(data.query_y), torch.from_numpy(data.database_y)
    n_bins = queries.shape[1] + 1

    def run() -> None:
        for rows in torch.arange(n_queries).split(16):
            distance = ((n_bins - 1 - queries[rows] @ database.T) / 2).long()
            relevant = (query_y[rows] @ database_y.T > 0).long()
            row = torch.arange(len(rows))[:, None] * n_bins
            torch.bincount(
                ((row + distance) * 2 + relevant).ravel(), minlength=len(rows) * n_bins * 2
            )

    return run


@dataclass
class Contender:
    name: str
    run: Callable[[], object]
    pairs: float  # or whatever unit its rate is in


def best_rates(contenders: list[Contender], rounds: int) -> dict[str, float]:
    """Units a second of each, in turns, best of the rounds."""
    best = dict.fromkeys([contender.name for contender in contenders], 0.0)
    for _ in range(rounds):
        for contender in contenders:
            start = time.perf_counter()
            contender.run()
            rate = contender.pairs / (time.perf_counter() - start)
            best[contender.name] = max(best[contender.name], rate)
    return best


def rankbits_ways(data: Data, is_multi: bool) -> list[Contender]:
    """Evaluation to the mean AP, and the counting in it: what threads and bounds are about."""
    queries, database, pairs = data.queries, data.database, len(data.queries) * len(data.database)
    if is_multi:
        relevance = affinity.tags(data.query_y > 0, data.database_y > 0)
    else:
        relevance = affinity.classes(data.query_y.argmax(1), data.database_y.argmax(1))

    def evaluate() -> object:
        return rankbits.evaluate(queries, database, relevance, ["AP"], n_threads=1)

    def count(n_threads: int) -> Callable[[], object]:
        return lambda: rankbits.count_ties(queries, database, relevance, n_threads=n_threads)

    return [
        Contender("rankbits", evaluate, pairs),
        Contender("count", count(1), pairs),
        Contender("count, 2 threads", count(2), pairs),
    ]


def run_case(n: int, n_bits: int, n_labels: int, kind: str, rounds: int) -> dict[str, object]:
    is_multi = kind == "multi-label"
    n_codes = 5000 if kind == "few codes" else None
    data = draw(n, n_bits, n_labels, is_multi, n_codes, is_learned=kind == "learned")
    few = 8 if n < 200_000 else 2
    signs = data.signs()
    contenders = [
        *rankbits_ways(data, is_multi),
        Contender("numpy", lambda: numpy_way(signs, data, few), few * n),
    ]
    torch_run = torch_way(data, 16)
    if torch_run is not None:
        contenders.append(Contender("torch", torch_run, 16 * n))
    joint, single = 0.0, 0.0
    rates = dict.fromkeys([contender.name for contender in contenders], 0.0)
    for _ in range(rounds):  # the bounds take their turn too
        joint = max(joint, 2 * machine_bounds.increments_per_second(n_bits + 1, is_joint=True))
        single = max(single, machine_bounds.increments_per_second(n_bits + 1, is_joint=False))
        for name, rate in best_rates(contenders, 1).items():
            rates[name] = max(rates[name], rate)
    return {
        "items": n,
        "bits": n_bits,
        "kind": kind,
        "labels": n_labels,
        "joint bound": joint,
        "increment bound": single,
        **rates,
    }


def metrics_milliseconds(n: int, rounds: int) -> dict[str, float]:
    data = draw(n, 64, 100, is_multi=False)
    labels = data.query_y.argmax(1), data.database_y.argmax(1)
    hist = rankbits.count_ties(data.queries, data.database, affinity.classes(*labels))
    named = {
        "AP": lambda: metrics.average_precision(hist),
        "nDCG": lambda: metrics.ndcg(hist),
        "P@100": lambda: metrics.precision(hist, k=100),
        "AP(min)@1000": lambda: metrics.average_precision(hist, 1000, "min"),
        "AP@1000": lambda: metrics.average_precision(hist, 1000),
    }
    rates = best_rates([Contender(name, run, 1.0) for name, run in named.items()], 3 * rounds)
    return {name: 1000 / rate for name, rate in rates.items()}


def show_case(row: dict[str, object]) -> None:
    ours, numpy_rate = row["rankbits"], row["numpy"]
    bound = row["increment bound"] if row["kind"] == "multi-label" else row["joint bound"]
    torch_ratio = f"{ours / row['torch']:6.0f}×" if "torch" in row else "     –"
    print(
        f"{row['items']:>9,} {row['bits']:>4} {row['kind']:>11} {row['labels']:>4}  "
        f"{ours / GIGA:6.2f} {numpy_rate / GIGA:8.4f} {ours / numpy_rate:6.0f}× {torch_ratio} "
        f"{row['count'] / GIGA:6.2f} {bound / GIGA:6.2f} {100 * row['count'] / bound:5.0f} % "
        f"{row['count, 2 threads'] / row['count']:5.2f}×",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--sizes", type=int, nargs="+", default=[59_000, 1_000_000])
    parser.add_argument("--bits", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()

    cache = {
        name: machine_bounds.read_bytes_per_second(size) / GIGA
        for name, size in (("L1", 1 << 14), ("L2", 1 << 18), ("DRAM", 1 << 28))
    }
    print(
        f"kernels: {_kernels.dispatch()}; read GB/s: "
        + ", ".join(f"{name} {rate:.0f}" for name, rate in cache.items())
        + f"; popcount of 64 bits {machine_bounds.popcounts_per_second() / GIGA:.2f} Gp/s"
    )
    print(
        f"{N_QUERIES} queries; Gp/s. ours, numpy, torch: evaluation. count: the counting alone, "
        "its bound one increment\nfor a pair (multi-label) or for two (class), and its speed-up "
        "with two threads. few codes: items share 5,000. learned: codes about "
        "one center for each class."
    )
    print(
        "    items bits        kind labels  ours    numpy   ratio  torch   count  bound   threads"
    )
    rows = []
    cases = [(kind, n_labels) for kind in options.kinds for n_labels in KINDS[kind]]
    for n in options.sizes:
        for n_bits in options.bits:
            for kind, n_labels in cases:
                rows.append(run_case(n, n_bits, n_labels, kind, options.rounds))
                show_case(rows[-1])
    times = {n: metrics_milliseconds(n, options.rounds) for n in options.sizes}
    for n, milliseconds in times.items():
        print(
            f"metrics of 1,000 queries × 64 bits, {n:,} items: "
            + ", ".join(f"{name} {ms:.2f} ms" for name, ms in milliseconds.items())
        )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(
            json.dumps({"cases": rows, "metrics_ms": times, "read": cache}, indent=2)
        )


if __name__ == "__main__":
    sys.exit(main())
