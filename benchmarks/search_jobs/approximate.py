"""Approximate search: every index at every setting that trades recall for speed."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rankbits import report
from search_jobs import peers
from search_jobs.peers import Peer, Sweep, search_call
from search_jobs.run import MILLION, Run
from search_jobs.timing import draw, in_turns, table

MINIMUM_RECALL = 0.996


class Point(NamedTuple):
    """One setting of one index."""

    recall: float
    speed: float  # queries a second
    setting: str


def approximate(run: Run) -> None:
    n, k = run.size(MILLION), 10
    queries, codes = draw("clustered", n, run.queries(1000), 64)
    scan = peers.rankbits_peer(codes, "scan")
    expected = scan.search(queries, k)
    sweeps = approximate_sweeps(run, codes)
    lines: dict[str, list[Point]] = {sweep.peer.name: [] for sweep in sweeps}
    for name, point in measure_sweeps(sweeps, queries, k, expected, run.rounds):
        lines[name].append(point)
    exact_peers = [scan, peers.rankbits_peer(codes, "mih")]
    timings = in_turns({p.name: search_call(p, queries, k) for p in exact_peers}, run.rounds)
    lines |= {name: [Point(1.0, 1 / timing.best, "exact")] for name, timing in timings.items()}
    run.record("approximate", n=n, k=k, lines=lines)
    show_approximate(run, n, lines, {sweep.peer.name: sweep.peer for sweep in sweeps})


def approximate_sweeps(run: Run, codes: np.ndarray) -> list[Sweep]:
    sweeps = [peers.rankbits_sweep(codes)]
    if "faiss" in run.packages:
        sweeps += peers.faiss_sweeps(run.packages["faiss"], codes, run.with_graphs)
    if "usearch" in run.packages and run.with_graphs:
        sweeps.append(peers.usearch_sweep(run.packages["usearch"], codes))
    return sweeps


def measure_sweeps(
    sweeps: list[Sweep], queries: np.ndarray, k: int, expected: np.ndarray, rounds: int
) -> Iterator[tuple[str, Point]]:
    """All settings of all indexes in turns: (name of the index, its point)."""
    jobs = [(sweep, setting) for sweep in sweeps for setting in sweep.settings]

    def search(sweep: Sweep, setting: str) -> np.ndarray:
        sweep.settings[setting]()
        return sweep.peer.search(queries, k)

    calls = {
        f"{sweep.peer.name} {setting}": (lambda s=sweep, t=setting: search(s, t), len(queries))
        for sweep, setting in jobs
    }
    timings = in_turns(calls, rounds)
    for sweep, setting in jobs:
        timing = timings[f"{sweep.peer.name} {setting}"]
        hits = measure_recall(search(sweep, setting), expected)
        yield sweep.peer.name, Point(hits, 1 / timing.best, setting)


def measure_recall(distances: np.ndarray, expected: np.ndarray) -> float:
    """Share of the k places filled with an item no farther than the k-th, so that ties are even."""
    return float((distances <= expected[:, -1:]).mean())


def show_approximate(
    run: Run, n: int, lines: dict[str, list[Point]], built: dict[str, Peer]
) -> None:
    title = f"Approximate search, {n:,} clustered codes of 64 bits, k = 10"
    columns = [
        "index", f"fastest at recall ≥ {MINIMUM_RECALL}", "µs a query", "bytes a code", "build s"
    ]  # fmt: skip
    table(title, columns, [fastest_row(n, name, lines[name], built.get(name)) for name in lines])
    if "faiss IVF" in lines:
        show_at_equal_recall(run, lines["rankbits ivf"], lines["faiss IVF"])
    settings = [
        [name, point.setting, f"{point.recall:.4f}", f"{1e6 / point.speed:.1f}"]
        for name, line in lines.items()
        for point in line
    ]
    table(title + ", all settings", ["index", "setting", "recall", "µs a query"], settings)
    run.out.mkdir(parents=True, exist_ok=True)
    (run.out / "recall.svg").write_text(report.recall_plot(lines))
    print(f"\nPlot: {run.out / 'recall.svg'}")


def fastest_row(n: int, name: str, line: list[Point], peer: Peer | None) -> list[str]:
    """The fastest setting of one index that reaches the recall, and what the index needs."""
    good = [point for point in line if point.recall >= MINIMUM_RECALL]
    best = max(good, key=lambda point: point.speed, default=None)
    return [
        name,
        best.setting if best else "none reaches it",
        f"{1e6 / best.speed:.1f}" if best else "–",
        f"{peer.n_bytes / n:.1f}" if peer else "–",
        f"{peer.build_seconds:.1f}" if peer else "–",
    ]


def show_at_equal_recall(run: Run, ours: list[Point], faiss: list[Point]) -> None:
    """For every setting of faiss IVF, our fastest that returns at least as much."""
    rows = []
    for point in faiss:
        good = [candidate for candidate in ours if candidate.recall >= point.recall]
        if not good:
            continue
        best = max(good, key=lambda candidate: candidate.speed)
        times = best.speed / point.speed
        run.record("equal recall", recall=point.recall, times=times)
        rows.append([
            point.setting, f"{point.recall:.4f}", f"{1e6 / point.speed:.1f}",
            best.setting, f"{best.recall:.4f}", f"{1e6 / best.speed:.1f}",
            f"{times:.2f}×", run.judge(times, 1.0),
        ])  # fmt: skip
    columns = ["faiss IVF", "recall", "µs a query", "rankbits ivf", "recall", "µs a query",
               "times faster", "target"]  # fmt: skip
    table("Inverted lists at equal recall, a batch", columns, rows)
