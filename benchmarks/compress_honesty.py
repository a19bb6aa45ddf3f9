"""Does `rankbits compress` keep its word on queries that it never saw?

For each collection and seed every candidate is measured once on all queries. Then the queries are
divided at random into two halves, ten times: the first half goes to the recommendation for
`--keep 0.95`, the other half is what it never saw. Printed are the shares of the divisions

    kept      in which the recommendation keeps at least .95 on the unseen half
    covered   in which the printed interval holds the value of the unseen half

The collections and the measured cells are those of `compress_sets.py`.

    python benchmarks/compress_honesty.py DATA [--out OUT] [--sets npl] [--seeds 0 1 2]
        [--keep 0.95] [--divisions 10] [--metric overlap@10] [--show]
"""

import argparse
from typing import Any

import numpy as np
from compress_sets import add_options, measure

from rankbits.compress._choice import divide_queries, recommend
from rankbits.compress._results import Candidates
from rankbits.compress._truth import Truth


def judge(
    candidates: Candidates, truth: Truth, metric: str, keep: float, seed: int, n_divisions: int
) -> list[dict[str, Any]]:
    """What each division says about its recommendation."""
    values, reference = candidates.values[metric], truth.reference[metric]
    paths, rng, rows = candidates.paths(), np.random.default_rng((seed, 77)), []
    for division in range(n_divisions):
        queries = rng.permutation(len(reference))
        seen, unseen = np.sort(queries[: len(queries) // 2]), queries[len(queries) // 2 :]
        divisions = divide_queries(len(seen), division)
        choice = recommend(values[:, seen], reference[seen], paths, keep, divisions)
        truly = values[choice.place, unseen].mean() / reference[unseen].mean()
        printed = choice.kept.row(0)
        rows.append(
            {
                "candidate": candidates.rows[choice.place],
                "holds": choice.holds,
                "is_kept": truly >= keep,
                "is_covered": printed["low"] <= truly <= printed["high"],
                "unseen": truly,
                **printed,
            }
        )
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        chosen = row["candidate"]
        print(
            f"    {chosen['bytes']} bytes, {chosen['method']}, {chosen['query']}, pool "
            f"{chosen['pool']}: printed {row['kept']:.3f} ({row['low']:.3f} to {row['high']:.3f}), "
            f"unseen {row['unseen']:.3f}{'' if row['holds'] else ', none holds'}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--keep", type=float, default=0.95)
    parser.add_argument("--divisions", type=int, default=10)
    parser.add_argument("--metric", choices=("nDCG@10", "overlap@10"), default="nDCG@10")
    parser.add_argument("--show", action="store_true", help="print every division")
    options = parser.parse_args()
    table = []
    for seed in options.seeds:
        for name in options.sets:
            measured = measure(name, seed, options, has_peers=False)
            rows = judge(*measured, options.metric, options.keep, seed, options.divisions)
            if options.show:
                show(rows)
            held = [row for row in rows if row["holds"]]
            shares = [np.mean([row[key] for row in rows]) for key in ("is_kept", "is_covered")]
            sizes = np.median([row["candidate"]["bytes"] for row in rows])
            table.append((name, seed, *shares, len(held) / len(rows), sizes))
    print(f"\n| set | seed | kept >= {options.keep} | covered | holds | median bytes |")
    print("|---|---|---|---|---|---|")
    for name, seed, kept, covered, n_held, size in table:
        print(f"| {name} | {seed} | {kept:.2f} | {covered:.2f} | {n_held:.2f} | {size:.0f} |")


if __name__ == "__main__":
    main()
