"""A collection larger than one likes to hold: built in blocks, saved, mapped and searched.

Codes are clustered, 64 bits, made block by block. Building runs in a process of its own, so that
the memory of each step is its own peak. Mapped pages count as memory here.

    python benchmarks/search_large.py [--items 100_000_000] [--folder FOLDER] [--threads 2]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from rankbits import BinaryCodes
from rankbits.index import Collection

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
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"add, s": seconds, "compact, s": compacted, "bytes an item": size / n}


def search(folder: Path, n_threads: int) -> dict[str, float]:
    queries = clustered(64, 0)
    report = {}
    began = time.perf_counter()
    with Collection.open(folder) as collection:
        index = collection.index(kind="scan")
        report["open and verify, s"] = time.perf_counter() - began
        for name, batch in (("one query", queries[:1]), ("64 queries", queries)):
            seconds = []
            for _ in range(3):
                began = time.perf_counter()
                index.search(batch, 100, n_threads=n_threads)
                seconds.append(time.perf_counter() - began)
            report[f"{name}, ms"] = 1000 * min(seconds)
        report["64 queries, Gp/s"] = 64 * len(index) / report["64 queries, ms"] / 1e6
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--step", choices=["build", "search"], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        step = build if chosen.step == "build" else search
        figures = step(chosen.folder, chosen.items if chosen.step == "build" else chosen.threads)
        print(json.dumps({**figures, "peak, MiB": peak_mib()}))
        return
    with tempfile.TemporaryDirectory(dir=chosen.folder) as place:
        print(f"| step | {chosen.items:,} codes of {N_BITS} bits |\n|---|---|")
        for step in ("build", "search"):
            command = [sys.executable, __file__, "--step", step, "--folder", f"{place}/large"]
            command += ["--items", str(chosen.items), "--threads", str(chosen.threads)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            for name, value in json.loads(done.stdout).items():
                print(f"| {step}: {name} | {value:,.1f} |", flush=True)


if __name__ == "__main__":
    main()
