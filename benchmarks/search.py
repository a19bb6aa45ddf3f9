"""Speed of search against faiss, usearch and NumPy, and against this machine's own bounds.

Contenders of one case take turns in one process, one thread each unless said, and the best of
several rounds counts. A slow contender runs on a few of the queries. Rates are (query, item) pairs
a second. Uniform codes have independent random bits. Clustered codes lie about random centres,
1,000 items to a centre: each bit of the centre is turned over with a chance of 5 %; queries lie
about the same centres and are not in the collection.

    python benchmarks/search.py [--job exact threads] [--scale 0.01] [--rounds 5]
                                [--clock cpu] [--out FOLDER]
"""

import argparse
import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy and faiss read them

from search_jobs.approximate import approximate
from search_jobs.exact import exact, show_worst, small, tables
from search_jobs.latency import latency, one
from search_jobs.peers import import_packages
from search_jobs.real import growth, real
from search_jobs.reranking import reranking
from search_jobs.resources import memory, threads
from search_jobs.run import Run
from search_jobs.timing import CLOCKS, set_clock

from rankbits._native import _kernels

JOBS = {
    "exact": exact,
    "small": small,
    "one": one,
    "tables": tables,
    "approximate": approximate,
    "latency": latency,
    "memory": memory,
    "threads": threads,
    "reranking": reranking,
    "real": real,
    "growth": growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--job", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the sizes, to try it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: on a shared machine")
    parser.add_argument("--no-graphs", action="store_true", help="leave out HNSW: minutes to build")
    parser.add_argument("--out", type=Path, default=Path("out/search"))
    options = parser.parse_args()
    set_clock(options.clock)
    packages = import_packages()
    run = Run(options.scale, options.rounds, not options.no_graphs, options.out, packages)
    print(
        f"kernels: {_kernels.dispatch()}; scale {run.scale:g}, best of {run.rounds} rounds, "
        f"{options.clock} time"
    )
    for job in options.job:
        JOBS[job](run)
    show_worst(run)
    run.write()


if __name__ == "__main__":
    sys.exit(main())
