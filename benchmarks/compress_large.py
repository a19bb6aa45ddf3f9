"""`rankbits compress` on many items: does it stay within its budget of minutes and of memory?

Items are synthetic clusters, float32 in a .npy file: 1,000 centers of 32 directions of their own,
in 384 dimensions; 1,000 queries come from the same clusters. Printed are minutes, the memory that
the process had at most, and the recommendation. The command runs on its own, as a user starts it.

    python benchmarks/compress_large.py OUT [--items 1000000] [--budget 30] [--bytes 8 16 32]
"""

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

WIDTH, N_CENTERS, N_DIRECTIONS, N_QUERIES = 384, 1000, 32, 1000
BLOCK = 50_000


def write_clusters(path: Path, n_rows: int, seed: int) -> None:
    """Rows of unit length around common centers, block by block into a mapped file."""
    shared = np.random.default_rng(0)
    centers = shared.standard_normal((N_CENTERS, WIDTH)).astype(np.float32)
    directions = shared.standard_normal((N_DIRECTIONS, WIDTH)).astype(np.float32)
    rng = np.random.default_rng(seed)
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, WIDTH))
    for start in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - start)
        block = centers[rng.integers(N_CENTERS, size=n)]
        block = block + 0.6 * rng.standard_normal((n, N_DIRECTIONS), np.float32) @ directions
        block += 0.7 * rng.standard_normal((n, WIDTH), np.float32)
        rows[start : start + n] = block / np.linalg.norm(block, axis=1, keepdims=True)
    rows.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--budget", type=float, default=30)
    parser.add_argument("--bytes", nargs="+", type=int, default=[8, 16, 32])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    items, queries = options.out / f"items_{options.items}.npy", options.out / "queries.npy"
    if not items.exists():
        write_clusters(items, options.items, seed=1)
    write_clusters(queries, N_QUERIES, seed=2)
    command = [str(Path(sys.executable).with_name("rankbits")), "compress", str(items)]
    command += ["--queries", str(queries), "--out", str(options.out / "compressed")]
    command += ["--budget", str(options.budget), "--format", "table"]
    for length in options.bytes:
        command += ["--bytes", str(length)]
    started = time.monotonic()
    subprocess.run(command, check=True)
    minutes = (time.monotonic() - started) / 60
    gigabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"{options.items:,} x {WIDTH}: {minutes:.1f} minutes of {options.budget:g}, "
          f"{gigabytes:.2f} GB at most")  # fmt: skip


if __name__ == "__main__":
    main()
