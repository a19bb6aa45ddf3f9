"""Queries one by one: the scan against the memory's own speed, and each index's latency."""

import time

import machine_bounds
import numpy as np

from search_jobs import peers
from search_jobs.peers import Peer, search_call
from search_jobs.run import MILLION, TEN_MILLION, Run
from search_jobs.timing import GIGA, draw, in_turns, table


def one(run: Run) -> None:
    """One query reads all codes once: how near is that to what memory gives?"""
    n = run.size(TEN_MILLION)
    rows = [read_row(run, n, n_bits) for n_bits in (32, 64, 128)]
    columns = ["bits", "ms", "GB/s", "DRAM read GB/s", "share", "target, %"]
    table(f"One query, {n:,} uniform codes, k = 10", columns, rows)


def read_row(run: Run, n: int, n_bits: int) -> list[str]:
    queries, codes = draw("uniform", n, 8, n_bits)
    scan = peers.rankbits_peer(codes, "scan")
    calls = {f"{q}": search_call(scan, queries[q : q + 1], 10) for q in range(len(queries))}
    best, bound = float("inf"), 0.0
    for _ in range(run.rounds):  # the bound takes its turn too
        bound = max(bound, machine_bounds.read_bytes_per_second(1 << 28))
        best = min(best, *(timing.best for timing in in_turns(calls, 1).values()))
    share = codes.nbytes / best / bound
    run.record("one", n=n, bits=n_bits, seconds=best, share=share)
    return [
        f"{n_bits}", f"{1000 * best:.2f}", f"{codes.nbytes / best / GIGA:.1f}",
        f"{bound / GIGA:.1f}", f"{100 * share:.0f} %", run.judge(100 * share, 85),
    ]  # fmt: skip


def latency(run: Run) -> None:
    n, k = run.size(MILLION), 10
    queries, codes = draw("clustered", n, run.queries(1000), 64)
    contenders = latency_peers(run, codes)
    microseconds: dict[str, list[float]] = {peer.name: [] for peer in contenders}
    for q in range(len(queries)):
        for peer in contenders:
            start = time.perf_counter()
            peer.search(queries[q : q + 1], k)
            microseconds[peer.name].append(1e6 * (time.perf_counter() - start))
    rows = [
        [name, *(f"{value:.0f}" for value in np.percentile(times, (50, 95, 99)))]
        for name, times in microseconds.items()
    ]
    run.record("latency", n=n, us={row[0]: row[1:] for row in rows})
    title = f"Latency of one query in µs, {n:,} clustered codes of 64 bits, k = {k}"
    table(title, ["index", "p50", "p95", "p99"], rows)


def latency_peers(run: Run, codes: np.ndarray) -> list[Peer]:
    contenders = [peers.rankbits_peer(codes, kind) for kind in ("scan", "mih", "auto", "ivf")]
    if "faiss" in run.packages:
        faiss = run.packages["faiss"]
        contenders.append(peers.faiss_flat(faiss, codes))
        for sweep in peers.faiss_sweeps(faiss, codes, with_graphs=False):
            sweep.settings.get("nprobe 16", list(sweep.settings.values())[-1])()
            contenders.append(sweep.peer)
    return contenders
