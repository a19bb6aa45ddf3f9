"""Codes without re-ranking, ours beside the quantizers of faiss, at the same bytes.

Every way to make codes is measured on the queries of the collections of `compress_sets.py`, by
nDCG@10. For each seed the queries are halved at random: the best of ours at each length, a method
and a kind of query, is chosen on one half, and all values that are printed come from the other
half. Printed are means over seeds, their standard deviations, microseconds of a query on one
thread, the bytes of an item with the model or codebooks shared out over the items, and where a peer
is ahead of the best of ours.

    python benchmarks/compress_peers.py DATA [--out OUT] [--sets npl] [--seeds 0 1 2]
        [--bytes 8 16 32] [--methods distilled itq] [--with-slow] [--without-peers]
"""

import argparse
from collections import defaultdict
from typing import Any

import numpy as np
from compress_sets import add_options, measure

from rankbits.compress._results import Candidates
from rankbits.compress._truth import Truth

METRIC = "nDCG@10"
BEST = "best of ours"


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
        if row["pool"] is None
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
        best = groups[BEST, "chosen"].get(n, [])
        value = np.mean([row["value"] for row in best])
        ahead = [
            f"{method} by {np.mean([row['value'] for row in by_length[n]]) - value:.4f}"
            for (method, _), by_length in groups.items()
            if by_length.get(n, [{"is_peer": False}])[0]["is_peer"]
            and np.mean([row["value"] for row in by_length[n]]) > value
        ]
        print(f"{n} bytes, chosen: {', '.join(row['which'] for row in best)}")
        print(f"{n} bytes, peers ahead: {', '.join(ahead) or 'none'}")


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
    add_options(parser)
    parser.add_argument("--without-peers", action="store_true")
    options = parser.parse_args()
    table: dict[str, list[dict[str, Any]]] = {name: [] for name in options.sets}
    for seed in options.seeds:
        for name in options.sets:
            measured = measure(name, seed, options, has_peers=not options.without_peers)
            table[name] += rows_of_a_seed(*measured, seed)
    for name, rows in table.items():
        show(name, rows, options.bytes)


if __name__ == "__main__":
    main()
