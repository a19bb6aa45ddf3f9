"""What an index needs: memory, time to build, and threads."""

from search_jobs import peers
from search_jobs.peers import Peer, search_call
from search_jobs.run import MILLION, TEN_MILLION, Run
from search_jobs.timing import draw, in_turns, rate, table

MOST_MEMORY = {"rankbits scan": 1.1, "rankbits mih, copies=False": 3.0}  # times the raw codes


def memory(run: Run) -> None:
    """Bytes a code and seconds to build. Approximate search tells those of the other indexes."""
    n = run.size(MILLION)
    rows = []
    for n_bits in (32, 64, 128):
        _, codes = draw("clustered", n, 1, n_bits)
        contenders = [peers.rankbits_peer(codes, kind) for kind in ("scan", "mih", "ivf")]
        contenders.append(peers.rankbits_peer(codes, "mih", copies=False))
        if "faiss" in run.packages:
            contenders.append(peers.faiss_flat(run.packages["faiss"], codes))
        rows += [[f"{n_bits}", *memory_row(peer, codes)] for peer in contenders]
    run.record("memory", rows=rows)
    columns = ["bits", "index", "bytes a code", "raw codes", "target", "build s"]
    table(f"Memory and building, {n:,} clustered codes", columns, rows)


def memory_row(peer: Peer, codes) -> list[str]:
    times = peer.n_bytes / codes.nbytes
    most = MOST_MEMORY.get(peer.name)
    verdict = f"≤ {most}: {'met' if times <= most else 'missed'}" if most else "–"
    n_bytes, seconds = f"{peer.n_bytes / len(codes):.1f}", f"{peer.build_seconds:.2f}"
    return [peer.name, n_bytes, f"{times:.2f}×", verdict, seconds]


def threads(run: Run) -> None:
    """Two threads against one, ours and those of faiss."""
    rows = []
    for kind, n, n_queries in (
        ("scan", MILLION, 512),
        ("scan", TEN_MILLION, 1),
        ("mih", MILLION, 512),
        ("ivf", MILLION, 512),
    ):
        rows += thread_rows(run, kind, n, n_queries)
    columns = ["index", "items", "queries", "one thread", "two", "times", "target"]
    table("Two threads, clustered codes of 64 bits, k = 10, Gp/s", columns, rows)


def thread_rows(run: Run, kind: str, n: int, n_queries: int) -> list[list[str]]:
    """A row for rankbits and, where it scans, one for faiss."""
    n, n_queries = run.size(n), n_queries if n_queries == 1 else run.queries(n_queries)
    queries, codes = draw("clustered", n, n_queries, 64)
    pairs = [[peers.rankbits_peer(codes, kind, n_threads=count) for count in (1, 2)]]
    if "faiss" in run.packages and kind == "scan":
        faiss = run.packages["faiss"]
        pairs.append([peers.faiss_flat(faiss, codes, count) for count in (1, 2)])
    calls = {peer.name: search_call(peer, queries, 10) for pair in pairs for peer in pair}
    timings = in_turns(calls, run.rounds * (8 if n_queries == 1 else 1))
    rows = []
    for single, double in pairs:
        times = timings[single.name].best / timings[double.name].best
        run.record("threads", index=single.name, n=n, queries=n_queries, times=times)
        is_judged = single is pairs[0][0] and n_queries > 1
        target = (1.9 if kind == "scan" else 1.8) if is_judged else None
        speeds = [rate(timings[peer.name], n) for peer in (single, double)]
        verdict = run.judge(times, target)
        rows.append([single.name, f"{n:,}", f"{n_queries:,}", *speeds, f"{times:.2f}×", verdict])
    return rows
