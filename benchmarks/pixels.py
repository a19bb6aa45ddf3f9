"""AP_T of `talr-ap` from pixels on CIFAR-10: a network that is tuned, or one trained from scratch.

Setting 1 has 5,000 labelled pictures and 1,000 queries, drawn anew for each split; setting 2 has
the standard parts, one split. Every split is fitted once for each kind of query, and the network,
which takes nearly all of the time, only once: a model with one map is asked in bits (`same`) and
by real weights, and so is one whose queries have a map of their own (`own`). Nothing is chosen
here: the queries are seen once, at the end. Printed are the scores, the share of pictures whose
class the network knows among those kept from it, minutes of all fits, and the memory of the
process. To choose settings there is --validate: a fifth of the training rows asks and is searched,
the others are learned from, and queries and database are not looked at. With --unlabelled the fit
sees the other pictures of the database too, without their labels; with --validate as well, the
pictures that ask are no such rows, but all others of the database are.

    python benchmarks/pixels.py DATA [--setting 1] [--splits 0 1 2] [--bits 32] [--kinds same own]
        [--param encoder='"backbone"' fine_tune='"last:11"' image_size=224] [--checkpoint DIR]
        [--validate] [--unlabelled]
"""

import argparse
import json
import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankbits import affinity, benchmark, evaluate, methods
from rankbits.benchmark._relevance import RetrievalTask
from rankbits.benchmark._sources import load_source
from rankbits.methods import PosteriorCache

DEFAULTS: dict[str, Any] = {"encoder": "backbone", "fine_tune": "last:11", "image_size": 224}
KINDS = ("same", "own")


def read_parameter(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    return name, json.loads(value)


def hold_out(task: RetrievalTask) -> RetrievalTask:
    """A fifth of the training rows as queries and items, the others to learn from."""
    x, y = task.training_x, task.training_y
    order = np.random.default_rng(99).permutation(len(x))
    asked, learned = order[: len(x) // 5], order[len(x) // 5 :]
    return replace(
        task,
        training_x=x[learned],
        training_y=y[learned],
        query_x=x[asked],
        database_x=x[asked],
        affinity=affinity.classes(y[asked], y[asked]),
    )


def fit_and_score(
    task: RetrievalTask,
    unlabelled: dict[str, np.ndarray],
    params: dict[str, Any],
    *,
    are_items: bool,
) -> dict[str, Any]:
    hasher = methods.get("talr-ap", **params)
    hasher.fit(task.training_x, task.training_y, **unlabelled)
    items, how = hasher.encode(task.database_x), {"exclude_self": are_items}
    in_bits = evaluate(hasher.encode_queries(task.query_x), items, task.affinity, **how)
    weights = hasher.project_queries(task.query_x)
    by_weights = evaluate(None, items, task.affinity, query_weights=weights, **how)
    report = hasher.report_.get("tuning") or hasher.report_["posterior"] or {}
    known = report.get("held_out_accuracy")
    return {"bits": in_bits.mean["AP"], "real": by_weights.mean["AP"], "held_out": known}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="cifar10_webp.npz, or the folder of the batches")
    parser.add_argument("--setting", type=int, choices=(1, 2), default=1)
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--param", nargs="*", type=read_parameter, default=[])
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--validate", action="store_true", help="on training rows only")
    parser.add_argument("--unlabelled", action="store_true", help="learn from the database too")
    options = parser.parse_args()
    protocol = benchmark.protocol(f"cifar10-s{options.setting}")
    data = load_source(protocol.data, options.data).data
    cells: dict[str, list[dict[str, Any]]] = {kind: [] for kind in options.kinds}
    for seed in options.splits if options.setting == 1 else options.splits[:1]:
        split, cache = protocol.split.draw(data, seed), PosteriorCache()
        task = protocol.relevance.task(data, split)
        task, others = (hold_out(task) if options.validate else task), {}
        if options.unlabelled:
            rows = np.setdiff1d(split.database, split.training, assume_unique=True)
            others = {"unlabelled": data.x[rows]}
        for kind in options.kinds:
            params = {**DEFAULTS, **dict(options.param), "n_bits": options.bits, "queries": kind}
            params |= {"random_state": seed, "posterior_cache": cache, "verbose": "auto"}
            if options.checkpoint:
                params["checkpoint"] = options.checkpoint / f"{split.hash[:12]}-{kind}"
            started = time.monotonic()
            cell = fit_and_score(task, others, params, are_items=options.validate)
            minutes = (time.monotonic() - started) / 60
            cells[kind].append(cell)
            scores = {name: None if v is None else round(v, 4) for name, v in cell.items()}
            print(f"split {split.hash[:12]}, {kind}: {scores}, {minutes:.1f} minutes", flush=True)
    print(f"\n| CIFAR-10 setting {options.setting}, {options.bits} bits | in bits | real-valued |")
    print("|---|---|---|")
    for kind, rows in cells.items():
        means = [_mean([row[by] for row in rows]) for by in ("bits", "real")]
        print(f'| `queries="{kind}"` | {" | ".join(means)} |')
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{gigabytes:.1f} GB of memory at most")


def _mean(values: list[float]) -> str:
    spread = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{spread}"


if __name__ == "__main__":
    main()
