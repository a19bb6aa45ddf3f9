"""Codes without re-ranking, ours beside the quantizers of faiss, at the same bytes.

Every way to make codes is measured on the queries of the collections of `compress_honesty.py`, by
nDCG@10. For each seed the queries are halved at random: the best of ours at each length, a method
and a kind of query, is chosen on one half, and all values that are printed come from the other
half. Printed are means over seeds, their standard deviations, microseconds of a query on one
thread, and the bytes of an item with the model or codebooks shared out over the items.

Measured cells stay in the folder OUT, so that a run may be stopped and taken up again.

    python benchmarks/compress_peers.py DATA [--out OUT] [--sets npl] [--seeds 3] [--bytes 8 16 32]
"""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from compress_honesty import SETS, TRAINING_ROWS

from rankbits.compress._candidates import coders
from rankbits.compress._plan import Plan
from rankbits.compress._results import Candidates, collect_candidates
from rankbits.compress._stages import Stages
from rankbits.compress._store import CellStore
from rankbits.compress._task import prepare_task
from rankbits.compress._truth import Truth, check_metrics

METRIC = "nDCG@10"
BEST = "best of ours"


def measure(
    data: dict[str, Any], seed: int, options: argparse.Namespace
) -> tuple[Candidates, Truth]:
    """Every way on every query, without re-ranking."""
    names = ("items", "queries", "judged", "query_labels", "item_labels")
    task = prepare_task(*(data.get(name) for name in names), "cosine", None, seed, None)
    requests = check_metrics(METRIC, task.relevance.kind)
    stages = Stages(CellStore(options.out), task, seed, None, lambda line: print(f"  {line}"))
    tried = coders(options.methods, task.relevance.kind, with_slow=not options.without_slow)
    n_training = min(TRAINING_ROWS, len(task.items))
    plan = Plan(tried, tuple(options.bytes), (), n_training, len(task.queries), seconds={})
    truth = stages.find_truth(requests)
    cells = stages.measure(plan, truth, None, has_peers=not options.without_peers)
    return collect_candidates(cells, truth.metrics, len(task.items)), truth


def rows_of_a_seed(candidates: Candidates, truth: Truth, seed: int) -> list[dict[str, Any]]:
    """What every way has on one half of the queries, and the best of ours by the other half."""
    values, n_queries = candidates.values[METRIC], len(truth.own)
    order = np.random.default_rng((seed, 78)).permutation(n_queries)
    choosing, judging = order[: n_queries // 2], order[n_queries // 2 :]
    rows = [
        {
            **row,
            "value": float(values[place, judging].mean()),
            "seen": float(values[place, choosing].mean()),
            "float": float(truth.reference[METRIC][judging].mean()),
        }
        for place, row in enumerate(candidates.rows)
    ]
    best = []
    for n_bytes in sorted({row["bytes"] for row in rows}):
        ours = [row for row in rows if row["bytes"] == n_bytes and not row["is_peer"]]
        chosen = max(ours, key=lambda row: row["seen"])
        name = f"{chosen['method']}, {chosen['query']}"
        best.append({**chosen, "method": BEST, "query": "chosen", "which": name})
    return [*best, *rows]


def show(name: str, rows: list[dict[str, Any]], lengths: list[int]) -> None:
    """A table of one collection."""
    groups: dict[tuple[str, str], dict[int, list[dict[str, Any]]]] = defaultdict(dict)
    for row in rows:
        groups[row["method"], row["query"]].setdefault(row["bytes"], []).append(row)
    means = f"float {np.mean([row['float'] for row in rows]):.4f}"
    heads = " | ".join(f"{n} bytes | µs | with model" for n in lengths)
    print(f"\n| {name}, {means} | queries | {heads} |\n|---|---|{'---|' * 3 * len(lengths)}")
    for (method, query), by_length in groups.items():
        parts = [_part(by_length.get(n, [])) for n in lengths]
        print(f"| {method} | {query} | {' | '.join(parts)} |")
    for n in lengths:
        print(f"{n} bytes, chosen: {[row['which'] for row in groups[BEST, 'chosen'].get(n, [])]}")


def _part(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "| |"
    values = np.array([row["value"] for row in rows])
    microseconds = np.median([row["microseconds"] for row in rows])
    size = np.mean([row["bytes_with_model"] for row in rows])
    spread = values.std(ddof=1) if len(values) > 1 else 0.0
    return f"{values.mean():.4f} ± {spread:.3f} | {microseconds:.0f} | {size:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("compress_peers"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--bytes", nargs="+", type=int, default=[8, 16, 32])
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--without-slow", action="store_true", help="leave slow ways of ours out")
    parser.add_argument("--without-peers", action="store_true")
    options = parser.parse_args()
    table: dict[str, list[dict[str, Any]]] = {name: [] for name in options.sets}
    for seed in range(options.seeds):
        for name in options.sets:
            print(f"{name}, seed {seed}", flush=True)
            measured = measure(SETS[name](options.data), seed, options)
            table[name] += rows_of_a_seed(*measured, seed)
    for name, rows in table.items():
        show(name, rows, options.bytes)


if __name__ == "__main__":
    main()
