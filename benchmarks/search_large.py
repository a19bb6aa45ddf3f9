"""A collection larger than one likes to hold: built in blocks, saved, mapped and searched.

Codes are clustered, 64 bits, made block by block. Building runs in a process of its own, so that
the memory of each step is its own peak, and so do searches by Hamming distance and by real-valued
queries. Mapped pages count as memory here; beside them stands what is in no file. The best ten of
one real-valued query are compared with sums that NumPy takes from tables of bytes.

    python benchmarks/search_large.py [--items 100_000_000] [--folder FOLDER] [--threads 2]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rankbits import BinaryCodes
from rankbits.index import Collection, HammingIndex

BLOCK = 4_000_000
N_BITS = 64
FLIP = 0.08


def clustered(n: int, seed: int) -> BinaryCodes:
    centres = np.random.default_rng(0).integers(0, 256, (10_000, N_BITS // 8), np.uint8)
    rng = np.random.default_rng(seed)
    packed = centres[rng.integers(len(centres), size=n)]
    for start in range(0, n, 500_000):  # bits are drawn as bytes: in pieces, to stay small
        part = packed[start : start + 500_000]
        part ^= np.packbits(rng.random((len(part), N_BITS), np.float32) < FLIP, axis=1)
    return BinaryCodes(packed, N_BITS)


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def anonymous_mib() -> float:
    """Memory now that is in no file, which a mapped collection does not count towards."""
    status = Path("/proc/self/status").read_text()
    return float(status.split("RssAnon:")[1].split()[0]) / 1024


def build(folder: Path, n: int) -> dict[str, float]:
    seconds = 0.0
    with Collection.create(folder, N_BITS) as collection:
        for number, start in enumerate(range(0, n, BLOCK)):
            codes = clustered(min(BLOCK, n - start), 1 + number)
            began = time.perf_counter()
            collection.add(codes)
            seconds += time.perf_counter() - began
        began = time.perf_counter()
        collection.compact()
        compacted = time.perf_counter() - began
        began = time.perf_counter()
        Collection.open(folder).close()
        opened = time.perf_counter() - began
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    report = {"add, s": seconds, "compact, s": compacted, "open and verify, s": opened}
    return report | {"bytes an item": size / n, "peak, MiB": peak_mib()}


def search(folder: Path, n_threads: int) -> dict[str, float]:
    queries = clustered(64, 0)
    with Collection.open(folder) as collection:
        index = collection.index(kind="scan")
        return time_searches(index, lambda n: index.search(queries[:n], 100, n_threads=n_threads))


def search_real(folder: Path, n_threads: int) -> dict[str, float]:
    weights = np.random.default_rng(0).standard_normal((64, N_BITS))
    with Collection.open(folder) as collection:
        index = collection.index()
        report = time_searches(
            index, lambda n: index.search_real(weights[:n], 100, n_threads=n_threads)
        )
        require_best(index, weights[0])
    return report


def time_searches(index: HammingIndex, search: Callable[[int], object]) -> dict[str, float]:
    """Times of one query and of 64, best of three, and the memory that was in use by then."""
    report = {}
    for name, n_queries in (("one query", 1), ("64 queries", 64)):
        seconds = []
        for _ in range(3):
            began = time.perf_counter()
            search(n_queries)
            seconds.append(time.perf_counter() - began)
        report[f"{name}, ms"] = 1000 * min(seconds)
    report["64 queries, Gp/s"] = 64 * len(index) / report["64 queries, ms"] / 1e6
    return report | {"peak, MiB": peak_mib(), "in no file, MiB": anonymous_mib()}


def require_best(index: HammingIndex, weights: np.ndarray) -> None:
    """Fail unless the ten largest scores are those of sums over the bytes of all codes."""
    signs = 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) - 1
    of_bytes = weights.reshape(-1, 8) @ signs.T
    best = np.empty(0)
    for start in range(0, len(index), BLOCK):
        packed = index.codes(np.arange(start, min(start + BLOCK, len(index)))).packed
        sums = sum(of_bytes[byte][packed[:, byte]] for byte in range(len(of_bytes)))
        best = np.sort(np.concatenate([best, np.partition(sums, -10)[-10:]]))[-10:]
    scores, ids = index.search_real(weights[None], 10)
    np.testing.assert_allclose(scores[0], best[::-1], rtol=1e-6)
    signs_found = 2.0 * index.codes(ids[0]).bits() - 1
    np.testing.assert_allclose(signs_found @ weights, scores[0], rtol=1e-6)


STEPS = {"build": build, "search": search, "real": search_real}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        number = chosen.items if chosen.step == "build" else chosen.threads
        print(json.dumps(STEPS[chosen.step](chosen.folder, number)))
        return
    with tempfile.TemporaryDirectory(dir=chosen.folder) as place:
        print(f"| step | {chosen.items:,} codes of {N_BITS} bits |\n|---|---|")
        for step in STEPS:
            command = [sys.executable, __file__, "--step", step, "--folder", f"{place}/large"]
            command += ["--items", str(chosen.items), "--threads", str(chosen.threads)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            for name, value in json.loads(done.stdout).items():
                print(f"| {step}: {name} | {value:,.1f} |", flush=True)


if __name__ == "__main__":
    main()
