"""Does `rankbits compress` keep its word on queries that it never saw?

For each collection and seed every candidate is measured once on all queries. Then the queries are
divided at random into two halves, ten times: the first half goes to the recommendation for
`--keep 0.95`, the other half is what it never saw. Printed are the shares of the divisions

    kept      in which the recommendation keeps at least .95 on the unseen half
    covered   in which the printed interval holds the value of the unseen half

    npl        93 queries and judgements, 11,426 documents
    cranfield  225 queries and graded judgements, 1,400 documents
    clinc      1,000 test requests against the other 21,500; relevant is the same intent

Measured cells stay in the folder OUT, so that a run may be stopped and taken up again.

    python benchmarks/compress_honesty.py DATA [--out OUT] [--sets npl] [--seeds 3] [--keep 0.95]
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from rankbits.compress._candidates import POOLS, coders
from rankbits.compress._choice import divide_queries, recommend
from rankbits.compress._lists import pools_of
from rankbits.compress._plan import Plan
from rankbits.compress._results import Candidates, collect_candidates
from rankbits.compress._stages import Stages
from rankbits.compress._store import CellStore
from rankbits.compress._task import prepare_task
from rankbits.compress._truth import Truth, check_metrics

BYTES, TRAINING_ROWS = (8, 16, 32), 20_000


def npl(folder: Path) -> dict[str, Any]:
    data = np.load(folder / "npl_minilm.npz")
    return {"items": data["documents"], "queries": data["queries"], "judged": data["qrels"]}


def cranfield(folder: Path) -> dict[str, Any]:
    data = np.load(folder / "cranfield_minilm.npz")
    qrels = np.load(folder / "cranfield.npz")["qrels"]
    qrels = qrels[(qrels[:, 2] >= 1) & (qrels[:, 2] <= 4)]
    judged = np.stack([qrels[:, 0] - 1, qrels[:, 1] - 1, 5 - qrels[:, 2]], axis=1)
    return {"items": data["documents"], "queries": data["queries"], "judged": judged}


def clinc(folder: Path) -> dict[str, Any]:
    data = np.load(folder / "clinc150_minilm.npz")
    tests = np.flatnonzero(data["split"] == 2)
    asked = np.sort(np.random.default_rng(0).permutation(tests)[:1000])
    others = np.setdiff1d(np.arange(len(data["x"])), asked)
    return {
        "items": data["x"][others],
        "queries": data["x"][asked],
        "query_labels": data["y"][asked],
        "item_labels": data["y"][others],
    }


SETS = {"npl": npl, "cranfield": cranfield, "clinc": clinc}


def measure(
    data: dict[str, Any], seed: int, out: Path, methods: list[str] | None
) -> tuple[Candidates, Truth]:
    """Every candidate on every query."""
    names = ("items", "queries", "judged", "query_labels", "item_labels")
    task = prepare_task(*(data.get(name) for name in names), "cosine", None, seed, None)
    requests = check_metrics(None, task.relevance.kind)
    stages = Stages(CellStore(out), task, seed, None, lambda line: print(f"  {line}", flush=True))
    pools = tuple(pools_of(POOLS, 10, len(task.items)))
    tried = coders(methods, task.relevance.kind)
    n_training = min(TRAINING_ROWS, len(task.items))
    plan = Plan(tried, BYTES, pools, n_training, len(task.queries), seconds={})
    truth = stages.find_truth(requests)
    cells = stages.measure(plan, truth, None, has_peers=False)
    return collect_candidates(cells, truth.metrics, len(task.items)), truth


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
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("compress_honesty"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--keep", type=float, default=0.95)
    parser.add_argument("--divisions", type=int, default=10)
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--metric", choices=("nDCG@10", "overlap@10"), default="nDCG@10")
    parser.add_argument("--show", action="store_true", help="print every division")
    options = parser.parse_args()
    table = []
    for seed in range(options.seeds):
        for name in options.sets:
            print(f"{name}, seed {seed}", flush=True)
            data = SETS[name](options.data)
            measured = measure(data, seed, options.out, options.methods)
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
