"""Exact search by everyone, at several sizes, code lengths and k."""

from dataclasses import dataclass

from search_jobs import peers
from search_jobs.peers import Peer, search_call
from search_jobs.run import MILLION, TEN_MILLION, Run
from search_jobs.timing import Timing, draw, in_turns, rate, ratio, table

FLAT_TARGETS = {32: 10.0, 64: 9.0, 128: 4.8}  # times faiss flat, for k up to 100
COLUMNS = [
    "k", "NumPy", "usearch exact", "faiss flat", "scan", "mih", "auto", "scan / faiss", "target",
    "mih / faiss", "target", "auto / scan", "all rounds",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One collection to search."""

    kind: str
    n: int
    n_bits: int
    n_queries: int


def exact(run: Run) -> None:
    for n_bits in (32, 64, 128):
        case = Case("uniform", run.size(MILLION), n_bits, run.queries(512))
        compare(run, case, (10, 100, 1000))


def small(run: Run) -> None:
    for n_bits in (32, 64, 128):
        compare(run, Case("uniform", run.size(59_000), n_bits, run.queries(2048)), (1000,))


def tables(run: Run) -> None:
    for kind in ("clustered", "uniform"):
        case = Case(kind, run.size(TEN_MILLION), 64, run.queries(256))
        compare(run, case, (1, 10, 100, 1000))


def compare(run: Run, case: Case, ks: tuple[int, ...]) -> None:
    """One table: everyone's speed at each k."""
    queries, codes = draw(case.kind, case.n, case.n_queries, case.n_bits)
    ours = rankbits_peers(codes, case.kind)
    contenders = [*ours.values(), *other_peers(run, codes)]
    shares = {"NumPy": 4, "usearch exact": 2}
    if case.kind == "uniform":
        shares["rankbits mih"] = max(4, case.n_queries // 32)  # far slower than the scan there
    timings = {}
    for k in (k for k in ks if k < case.n):
        ours["auto"].index.tune(queries[:32], k)  # or it builds tables beside the others' turns
        calls = {p.name: search_call(p, queries[: shares.get(p.name)], k) for p in contenders}
        timings[k] = in_turns(calls, run.rounds)
    rows = [exact_row(run, case, k, timings[k]) for k in timings]
    show_copies(run, case, timings)
    show_large_k(run, case, timings)
    title = f"Exact search, {case.n:,} {case.kind} codes of {case.n_bits} bits, Gp/s, one thread"
    table(title, COLUMNS, rows)


def rankbits_peers(codes, kind: str) -> dict[str, Peer]:
    ours = {name: peers.rankbits_peer(codes, name) for name in ("scan", "mih", "auto")}
    if kind == "clustered":
        ours["mih without copies"] = peers.rankbits_peer(codes, "mih", copies=False)
    return ours


def other_peers(run: Run, codes) -> list[Peer]:
    others = [peers.numpy_peer(codes)]
    if "faiss" in run.packages:
        others.append(peers.faiss_flat(run.packages["faiss"], codes))
    if "usearch" in run.packages:
        others.append(peers.usearch_exact(run.packages["usearch"], codes))
    return others


def exact_row(run: Run, case: Case, k: int, timings: dict[str, Timing]) -> list[str]:
    scan, mih, auto = (timings[f"rankbits {name}"] for name in ("scan", "mih", "auto"))
    flat = timings.get("faiss flat")
    scan_target, mih_target = flat_targets(case, k)
    seconds = {name: timing.best for name, timing in timings.items()}
    speed = {"auto / scan": scan.best / auto.best, "in all": scan.mean / auto.mean}
    run.record("exact", codes=case.kind, n=case.n, bits=case.n_bits, k=k, seconds=seconds, **speed)
    return [
        str(k),
        *(rate(timings.get(name), case.n) for name in ("NumPy", "usearch exact", "faiss flat")),
        *(rate(timing, case.n) for timing in (scan, mih, auto)),
        ratio(flat, scan),
        run.judge(flat and flat.best / scan.best, scan_target),
        ratio(flat, mih),
        run.judge(flat and flat.best / mih.best, mih_target),
        f"{speed['auto / scan']:.2f}×",
        f"{speed['in all']:.2f}×",
    ]


def flat_targets(case: Case, k: int) -> tuple[float | None, float | None]:
    """How many times faster than faiss flat the scan and mih are to be."""
    scan_target = FLAT_TARGETS.get(case.n_bits) if k <= 100 and case.kind == "uniform" else None
    if k == 1000 and case.n < 100_000:
        scan_target = 6.0
    return scan_target, 200.0 if (case.kind, case.n_bits, k) == ("clustered", 64, 100) else None


def show_copies(run: Run, case: Case, timings: dict[int, dict[str, Timing]]) -> None:
    """What mih loses where it keeps no copies of the codes in its tables."""
    for k, timing in timings.items():
        without = timing.get("rankbits mih, copies=False")
        if without is None:
            continue
        share = timing["rankbits mih"].best / without.best
        run.record("rows", n=case.n, k=k, share=share)
        print(
            f"\nk = {k}: mih without copies of the codes has {share:.2f} of the speed of mih "
            f"with them; target {run.judge(share, 0.5)}"
        )


def show_large_k(run: Run, case: Case, timings: dict[int, dict[str, Timing]]) -> None:
    """What the scan loses from k = 100 to k = 1000."""
    if not {100, 1000} <= timings.keys() or case.n < 100_000:
        return
    share = timings[100]["rankbits scan"].best / timings[1000]["rankbits scan"].best
    run.record("k", n=case.n, bits=case.n_bits, codes=case.kind, share=share)
    print(
        f"\nscan at k = 1000 has {share:.2f} of its speed at k = 100; target "
        f"{run.judge(share, 0.6)}"
    )


def show_worst(run: Run) -> None:
    """The planner is to be no more than 5 % slower than the scan, whatever the job."""
    cases = [record for record in run.records if record["job"] == "exact"]
    if not cases:
        return
    for column, meaning in (
        ("auto / scan", "best round"),
        ("in all", "all rounds, trials included"),
    ):
        worst = min(cases, key=lambda record: record[column])
        print(
            f"\nauto against scan at its worst, {meaning}: {worst[column]:.2f}× (k = {worst['k']}, "
            f"{worst['n']:,} {worst['codes']} codes of {worst['bits']} bits); target "
            f"{run.judge(worst[column], 0.95)}"
        )
