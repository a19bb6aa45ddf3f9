"""Speed of search against faiss, usearch and NumPy, and against this machine's own bounds.

Contenders of one case take turns in one process, one thread each unless said, and the best of
several rounds counts. A slow contender runs on a few of the queries. Rates are (query, item) pairs
a second. Uniform codes have independent random bits. Clustered codes lie about random centres,
1,000 items to a centre: each bit of the centre is turned over with a chance of 5 %; queries lie
about the same centres and are not in the collection.

    python benchmarks/search.py [--job exact threads] [--scale 0.01] [--rounds 5] [--out FOLDER]
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy and faiss read them

import machine_bounds
import numpy as np
import search_peers as peers
from search_peers import Peer, Sweep
from search_tools import GIGA, Timing, draw, in_turns, rate, ratio, table

from rankbits import BinaryCodes, report
from rankbits._native import _kernels
from rankbits.index import Candidates, Ragged, vectors
from rankbits.index.rescoring.base import rescored

MILLION, TEN_MILLION = 1_000_000, 10_000_000
WANTED_RECALL = 0.996
FLAT_TARGETS = {32: 10.0, 64: 9.0, 128: 4.8}  # times faiss flat, for k up to 100


@dataclass
class Run:
    """What was asked for, and what has been measured so far."""

    scale: float
    rounds: int
    with_graphs: bool
    out: Path
    packages: dict[str, object]
    found: list[dict[str, object]] = field(default_factory=list)

    def size(self, n: int) -> int:
        return max(2000, int(n * self.scale))

    def queries(self, n: int) -> int:
        return n if self.scale >= 0.5 else max(4, n // 10)

    def asked(self, found: float | None, target: float | None) -> str:
        """A target, and whether it was met; smaller sizes than it speaks of tell nothing."""
        if target is None:
            return "–"
        is_judged = self.scale >= 1 and found is not None
        return f"≥ {target:g}" + (
            f": {'met' if found >= target else 'missed'}" if is_judged else ""
        )


def job_of(peer: Peer, queries: np.ndarray, k: int) -> tuple[Callable[[], object], int]:
    return lambda: peer.search(queries, k), len(queries)


def compared(run: Run, kind: str, n: int, n_bits: int, ks: tuple[int, ...], n_queries: int) -> None:
    """Exact search by everyone."""
    queries, codes = draw(kind, n, n_queries, n_bits)
    ours = {name: peers.rankbits_peer(codes, name) for name in ("scan", "mih", "auto")}
    if kind == "clustered":
        ours["rows"] = peers.rankbits_peer(codes, "mih", copies=False)
    theirs = [peers.numpy_peer(codes)]
    if "faiss" in run.packages:
        theirs.append(peers.faiss_flat(run.packages["faiss"], codes))
    if "usearch" in run.packages:
        theirs.append(peers.usearch_exact(run.packages["usearch"], codes))
    shares = {"NumPy": 4, "usearch exact": 2}
    if kind == "uniform":
        shares["rankbits mih"] = max(4, n_queries // 32)  # far slower than the scan there
    rows, scans = [], {}
    for k in (k for k in ks if k < n):
        ours["auto"].kept.tune(queries[:32], k)  # or it would build tables beside the others' turns
        runs = {
            p.name: job_of(p, queries[: shares.get(p.name)], k) for p in [*ours.values(), *theirs]
        }
        got = in_turns(runs, run.rounds)
        rows.append(exact_row(run, (kind, n, n_bits, k), got))
        scans[k] = got["rankbits scan"].best
        if "rows" in ours:
            share = got["rankbits mih"].best / got["rankbits mih, copies=False"].best
            run.found.append({"job": "rows", "n": n, "k": k, "share": share})
            print(
                f"\nk = {k}: mih without copies of the codes has {share:.2f} of the speed of mih "
                f"with them; target {run.asked(share, 0.5)}"
            )
    if 100 in scans and 1000 in scans and n >= 100_000:
        share = scans[100] / scans[1000]
        run.found.append({"job": "k", "n": n, "bits": n_bits, "codes": kind, "share": share})
        print(
            f"\nscan at k = 1000 has {share:.2f} of its speed at k = 100; target "
            f"{run.asked(share, 0.6)}"
        )
    table(
        f"Exact search, {n:,} {kind} codes of {n_bits} bits, Gp/s, one thread",
        ["k", "NumPy", "usearch exact", "faiss flat", "scan", "mih", "auto", "scan / faiss",
         "target", "mih / faiss", "target", "auto / scan", "all rounds"],
        rows,
    )  # fmt: skip


def exact_row(run: Run, case: tuple, got: dict[str, Timing]) -> list[str]:
    kind, n, n_bits, k = case
    scan, mih, auto = (got[f"rankbits {name}"] for name in ("scan", "mih", "auto"))
    flat = got.get("faiss flat")
    scan_target = FLAT_TARGETS.get(n_bits) if k <= 100 and kind == "uniform" else None
    if k == 1000 and n < 100_000:
        scan_target = 6.0
    mih_target = 200.0 if (kind, n_bits, k) == ("clustered", 64, 100) else None
    seconds = {name: timing.best for name, timing in got.items()}
    speed = {"auto / scan": scan.best / auto.best, "in all": scan.mean / auto.mean}
    run.found.append(
        {"job": "exact", "codes": kind, "n": n, "bits": n_bits, "k": k, "seconds": seconds, **speed}
    )
    return [
        str(k),
        *(rate(got.get(name), n) for name in ("NumPy", "usearch exact", "faiss flat")),
        *(rate(timing, n) for timing in (scan, mih, auto)),
        ratio(flat, scan),
        run.asked(flat and flat.best / scan.best, scan_target),
        ratio(flat, mih),
        run.asked(flat and flat.best / mih.best, mih_target),
        f"{speed['auto / scan']:.2f}×",
        f"{speed['in all']:.2f}×",
    ]


def exact(run: Run) -> None:
    for n_bits in (32, 64, 128):
        compared(run, "uniform", run.size(MILLION), n_bits, (10, 100, 1000), run.queries(512))


def small(run: Run) -> None:
    for n_bits in (32, 64, 128):
        compared(run, "uniform", run.size(59_000), n_bits, (1000,), run.queries(2048))


def tables(run: Run) -> None:
    for kind in ("clustered", "uniform"):
        n = run.size(TEN_MILLION)
        compared(run, kind, n, 64, (1, 10, 100, 1000), run.queries(256))


def one(run: Run) -> None:
    """One query reads all codes once: how near to what memory gives?"""
    rows = []
    for n_bits in (32, 64, 128):
        n = run.size(TEN_MILLION)
        queries, codes = draw("uniform", n, 8, n_bits)
        scan = peers.rankbits_peer(codes, "scan")
        runs = {f"{q}": job_of(scan, queries[q : q + 1], 10) for q in range(len(queries))}
        best, bound = float("inf"), 0.0
        for _ in range(run.rounds):  # the bound takes its turn too
            bound = max(bound, machine_bounds.read_bytes_per_second(1 << 28))
            best = min(best, *(timing.best for timing in in_turns(runs, 1).values()))
        share = codes.nbytes / best / bound
        run.found.append({"job": "one", "n": n, "bits": n_bits, "seconds": best, "share": share})
        rows.append(
            [f"{n_bits}", f"{1000 * best:.2f}", f"{codes.nbytes / best / GIGA:.1f}",
             f"{bound / GIGA:.1f}", f"{100 * share:.0f} %", run.asked(100 * share, 85)]
        )  # fmt: skip
    columns = ["bits", "ms", "GB/s", "DRAM read GB/s", "share", "target, %"]
    table(f"One query, {run.size(TEN_MILLION):,} uniform codes, k = 10", columns, rows)


def recall(found: np.ndarray, expected: np.ndarray) -> float:
    """Share of the k places filled with an item no farther than the k-th, so that ties are even."""
    return float((found <= expected[:, -1:]).mean())


def approximate(run: Run) -> None:
    n, k = run.size(MILLION), 10
    queries, codes = draw("clustered", n, run.queries(1000), 64)
    expected = peers.rankbits_peer(codes, "scan").search(queries, k)
    sweeps = [peers.rankbits_sweep(codes)]
    if "faiss" in run.packages:
        sweeps += peers.faiss_sweeps(run.packages["faiss"], codes, run.with_graphs)
    if "usearch" in run.packages and run.with_graphs:
        sweeps.append(peers.usearch_sweep(run.packages["usearch"], codes))
    lines = {sweep.peer.name: [] for sweep in sweeps}
    for sweep, text, timing, hits in swept(sweeps, queries, k, expected, run.rounds):
        lines[sweep.peer.name].append((hits, 1 / timing.best, text))
    exact_peers = [peers.rankbits_peer(codes, "scan"), peers.rankbits_peer(codes, "mih")]
    got = in_turns({p.name: job_of(p, queries, k) for p in exact_peers}, run.rounds)
    lines |= {name: [(1.0, 1 / timing.best, "exact")] for name, timing in got.items()}
    run.found.append({"job": "approximate", "n": n, "k": k, "lines": lines})
    show_approximate(run, n, lines, {sweep.peer.name: sweep.peer for sweep in sweeps})


def swept(
    sweeps: list[Sweep], queries: np.ndarray, k: int, expected: np.ndarray, rounds: int
) -> Iterator[tuple[Sweep, str, Timing, float]]:
    """All settings of all indexes in turns: (sweep, setting, its times, its recall)."""
    jobs = [(sweep, text) for sweep in sweeps for text in sweep.settings]

    def search(sweep: Sweep, text: str) -> np.ndarray:
        sweep.settings[text]()
        return sweep.peer.search(queries, k)

    runs = {
        f"{sweep.peer.name} {text}": (lambda s=sweep, t=text: search(s, t), len(queries))
        for sweep, text in jobs
    }
    got = in_turns(runs, rounds)
    for sweep, text in jobs:
        timing = got[f"{sweep.peer.name} {text}"]
        yield sweep, text, timing, recall(search(sweep, text), expected)


def show_approximate(run: Run, n: int, lines: dict[str, list], built: dict[str, Peer]) -> None:
    rows, fastest = [], {}
    for name, line in lines.items():
        good = [point for point in line if point[0] >= WANTED_RECALL]
        fastest[name] = max((point[1] for point in good), default=0.0)
        text = max(good, key=lambda point: point[1])[2] if good else "none reaches it"
        peer = built.get(name)
        rows.append([
            name, text, f"{1e6 / fastest[name]:.1f}" if good else "–",
            f"{peer.n_bytes / n:.1f}" if peer else "–",
            f"{peer.build_seconds:.1f}" if peer else "–",
        ])  # fmt: skip
    title = f"Approximate search, {n:,} clustered codes of 64 bits, k = 10"
    columns = ["index", f"fastest at recall ≥ {WANTED_RECALL}", "µs a query", "bytes a code",
               "build s"]  # fmt: skip
    table(title, columns, rows)
    if "faiss IVF" in lines:
        show_at_equal_recall(run, lines["rankbits ivf"], lines["faiss IVF"])
    settings = [[name, text, f"{hits:.4f}", f"{1e6 / speed:.1f}"]
                for name, line in lines.items() for hits, speed, text in line]  # fmt: skip
    table(title + ", all settings", ["index", "setting", "recall", "µs a query"], settings)
    run.out.mkdir(parents=True, exist_ok=True)
    (run.out / "recall.svg").write_text(report.recall_plot(lines))
    print(f"\nPlot: {run.out / 'recall.svg'}")


def show_at_equal_recall(run: Run, ours: list, theirs: list) -> None:
    """For every setting of faiss IVF, our fastest that returns at least as much."""
    rows = []
    for hits, speed, text in theirs:
        good = [point for point in ours if point[0] >= hits]
        if not good:
            continue
        best = max(good, key=lambda point: point[1])
        times = best[1] / speed
        run.found.append({"job": "equal recall", "recall": hits, "times": times})
        rows.append([text, f"{hits:.4f}", f"{1e6 / speed:.1f}", best[2], f"{best[0]:.4f}",
                     f"{1e6 / best[1]:.1f}", f"{times:.2f}×", run.asked(times, 1.0)])  # fmt: skip
    columns = ["faiss IVF", "recall", "µs a query", "rankbits ivf", "recall", "µs a query",
               "times faster", "target"]  # fmt: skip
    table("Inverted lists at equal recall, a batch", columns, rows)


def rescoring(run: Run) -> None:
    """Re-ranking a pool by original vectors, ours and with NumPy."""
    n, d, n_queries, size, k = run.size(100_000), 384, run.queries(256), 1000, 10
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d)).astype(np.float32)
    q = rng.standard_normal((n_queries, d)).astype(np.float32)
    pool = np.sort(rng.integers(0, n, (n_queries, size)), axis=1)
    offsets, ids = np.arange(n_queries + 1) * size, pool.ravel()
    nearest = Ragged(offsets, np.zeros(len(ids), np.int32), ids)
    codes = BinaryCodes(np.zeros((n_queries, 1), np.uint8), 8)

    def numpy_way() -> object:
        scores = np.empty((n_queries, size))
        for row in range(n_queries):
            scores[row] = np.sqrt(np.square(x[pool[row]].astype(np.float64) - q[row]).sum(axis=1))
        part = np.argpartition(scores, k, axis=1)[:, :k]
        return np.take_along_axis(scores, part, axis=1)

    def ours(n_threads: int) -> object:
        return rescored(Candidates(codes, nearest, lambda _: codes, n_threads), vectors(x, q), k)

    got = in_turns({"NumPy": (numpy_way, n_queries), "one": (lambda: ours(1), n_queries),
                    "two": (lambda: ours(2), n_queries)}, run.rounds)  # fmt: skip
    times = got["NumPy"].best / got["one"].best
    run.found.append({"job": "rescoring", "times": times})
    rows = [[name, f"{1e6 * timing.best:.0f}", f"{got['NumPy'].best / timing.best:.1f}×"]
            for name, timing in got.items()]  # fmt: skip
    title = f"Re-ranking pools of {size} vectors of {d} floats, {n_queries} queries"
    table(title, ["threads", "µs a query", "times NumPy"], rows)
    print(f"\nOne thread is {times:.1f} times NumPy; target {run.asked(times, 5.0)}")


def latency(run: Run) -> None:
    """Queries that come one by one."""
    n, k = run.size(MILLION), 10
    queries, codes = draw("clustered", n, run.queries(1000), 64)
    found = [peers.rankbits_peer(codes, kind) for kind in ("scan", "mih", "auto", "ivf")]
    if "faiss" in run.packages:
        faiss = run.packages["faiss"]
        found.append(peers.faiss_flat(faiss, codes))
        for sweep in peers.faiss_sweeps(faiss, codes, with_graphs=False):
            sweep.settings.get("nprobe 16", list(sweep.settings.values())[-1])()
            found.append(sweep.peer)
    taken = {peer.name: [] for peer in found}
    for q in range(len(queries)):
        for peer in found:
            start = time.perf_counter()
            peer.search(queries[q : q + 1], k)
            taken[peer.name].append(1e6 * (time.perf_counter() - start))
    rows = [[name, *(f"{value:.0f}" for value in np.percentile(times, (50, 95, 99)))]
            for name, times in taken.items()]  # fmt: skip
    run.found.append({"job": "latency", "n": n, "us": {row[0]: row[1:] for row in rows}})
    title = f"Latency of one query in µs, {n:,} clustered codes of 64 bits, k = {k}"
    table(title, ["index", "p50", "p95", "p99"], rows)


def memory(run: Run) -> None:
    """Bytes a code and seconds to build. Approximate search tells those of the other indexes."""
    rows = []
    for n_bits in (32, 64, 128):
        n = run.size(MILLION)
        _, codes = draw("clustered", n, 1, n_bits)
        found = [peers.rankbits_peer(codes, kind) for kind in ("scan", "mih", "ivf")]
        found.append(peers.rankbits_peer(codes, "mih", copies=False))
        if "faiss" in run.packages:
            found.append(peers.faiss_flat(run.packages["faiss"], codes))
        for peer in found:
            times = peer.n_bytes / codes.nbytes
            most = {"rankbits scan": 1.1, "rankbits mih, copies=False": 3.0}.get(peer.name)
            said = f"≤ {most}: {'met' if times <= most else 'missed'}" if most else "–"
            seconds = f"{peer.build_seconds:.2f}"
            rows.append([f"{n_bits}", peer.name, f"{peer.n_bytes / n:.1f}", f"{times:.2f}×", said,
                         seconds])  # fmt: skip
    run.found.append({"job": "memory", "rows": rows})
    columns = ["bits", "index", "bytes a code", "raw codes", "target", "build s"]
    table(f"Memory and building, {run.size(MILLION):,} clustered codes", columns, rows)


def threads(run: Run) -> None:
    """Two threads against one, ours and those of faiss."""
    rows = []
    for kind, items, n_queries in (
        ("scan", MILLION, 512),
        ("scan", TEN_MILLION, 1),
        ("mih", MILLION, 512),
        ("ivf", MILLION, 512),
    ):
        n, many = run.size(items), n_queries if n_queries == 1 else run.queries(n_queries)
        queries, codes = draw("clustered", n, many, 64)
        both = [peers.rankbits_peer(codes, kind, n_threads=count) for count in (1, 2)]
        if "faiss" in run.packages and kind == "scan":
            both += [peers.faiss_flat(run.packages["faiss"], codes, count) for count in (1, 2)]
        runs = {peer.name: job_of(peer, queries, 10) for peer in both}
        got = in_turns(runs, run.rounds * (8 if many == 1 else 1))
        for single, double in (both[:2], both[2:])[: len(both) // 2]:
            times = got[single.name].best / got[double.name].best
            case = {"n": n, "queries": many, "times": times}
            run.found.append({"job": "threads", "index": single.name, **case})
            target = (1.9 if kind == "scan" and many > 1 else 1.8) if single is both[0] else None
            rows.append([single.name, f"{n:,}", f"{many:,}", rate(got[single.name], n),
                         rate(got[double.name], n), f"{times:.2f}×",
                         run.asked(times, target if many > 1 else None)])  # fmt: skip
    columns = ["index", "items", "queries", "one thread", "two", "times", "target"]
    table("Two threads, clustered codes of 64 bits, k = 10, Gp/s", columns, rows)


JOBS = {
    "exact": exact,
    "small": small,
    "one": one,
    "tables": tables,
    "approximate": approximate,
    "latency": latency,
    "memory": memory,
    "threads": threads,
    "rescoring": rescoring,
}


def show_worst(run: Run) -> None:
    """The planner is to be no more than 5 % slower than the scan, whatever the job."""
    cases = [row for row in run.found if row["job"] == "exact"]
    if not cases:
        return
    for column, said in (("auto / scan", "best round"), ("in all", "all rounds, trials included")):
        worst = min(cases, key=lambda row: row[column])
        print(
            f"\nauto against scan at its worst, {said}: {worst[column]:.2f}× (k = {worst['k']}, "
            f"{worst['n']:,} {worst['codes']} codes of {worst['bits']} bits); target "
            f"{run.asked(worst[column], 0.95)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--job", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the sizes, to try it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-graphs", action="store_true", help="leave out HNSW: minutes to build")
    parser.add_argument("--out", type=Path, default=Path("out/search"))
    options = parser.parse_args()
    packages = peers.packages()
    run = Run(options.scale, options.rounds, not options.no_graphs, options.out, packages)
    print(f"kernels: {_kernels.dispatch()}; scale {run.scale:g}, best of {run.rounds} rounds")
    for job in options.job:
        JOBS[job](run)
    show_worst(run)
    run.out.mkdir(parents=True, exist_ok=True)
    (run.out / "search.json").write_text(json.dumps(run.found, indent=2))


if __name__ == "__main__":
    sys.exit(main())
