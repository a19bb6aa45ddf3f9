"""Kinds of query on CIFAR-10, setting 1: AP_T of every method that is trained by gradients.

A model of `queries="same"` is asked in bits and by real weights of its one map, and so is one of
`queries="own"` by its second map. A split has a seed of its own, which is that of the fits too.

    python benchmarks/cifar_queries.py DATA [--methods talr-ap] [--bits 32] [--splits 3]
"""

import argparse
from functools import partial
from itertools import product
from pathlib import Path

from class_tables import CellStore, format_mean, print_leads

from rankbits import benchmark, evaluate, methods
from rankbits.benchmark._relevance import RetrievalTask
from rankbits.benchmark._sources import load_source
from rankbits.methods import PosteriorCache

METHODS = (
    "talr-ap",
    "hashnet",
    "dtsh",
    "mihash",
    "greedyhash",
    "dpsh",
    "orthohash",
    "csq",
    "dpn",
    "dsh-dispersed",
    "dsh",
)
KINDS = ("own", "same")


def fit_and_score(
    task: RetrievalTask, name: str, kind: str, n_bits: int, seed: int, cache: PosteriorCache
) -> dict[str, float]:
    hasher = methods.get(
        name, n_bits=n_bits, queries=kind, random_state=seed, posterior_cache=cache
    )
    hasher.fit(task.training_x, task.training_y)
    items = hasher.encode(task.database_x)
    in_bits = evaluate(hasher.encode_queries(task.query_x), items, task.affinity)
    weights = hasher.project_queries(task.query_x)
    by_weights = evaluate(None, items, task.affinity, query_weights=weights)
    return {"bits": in_bits.mean["AP"], "real": by_weights.mean["AP"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--bits", nargs="+", type=int, default=[12, 24, 32, 48])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--store", type=Path, default=Path("cifar_queries.json"))
    options = parser.parse_args()
    store, cells = CellStore(options.store), {}
    protocol = benchmark.protocol("cifar10-s1")
    data = load_source(protocol.data, options.data).data
    for seed in range(options.splits):
        split, cache = protocol.split.draw(data, seed), PosteriorCache()
        task = protocol.relevance.task(data, split)
        for kind, n_bits, name in product(options.kinds, options.bits, options.methods):
            fit = partial(fit_and_score, task, name, kind, n_bits, seed, cache)
            cell = store.compute(f"{split.hash[:12]} {name} {kind} {n_bits} bits, seed {seed}", fit)
            cells.setdefault((name, kind, n_bits), []).append(cell)
    print_table(options, cells)
    print_leads(cells, options.methods)


def print_table(options: argparse.Namespace, cells: dict[tuple, list[dict]]) -> None:
    print("| method | `queries=` | asked by | " + " | ".join(f"{n} bits" for n in options.bits))
    print("|---|---|---|" + "---|" * len(options.bits))
    for name, kind, by in product(options.methods, options.kinds, ("bits", "real")):
        means = (
            format_mean([cell[by] for cell in cells[name, kind, n_bits]]) for n_bits in options.bits
        )
        print(f"| `{name}` | {kind} | {by} | " + " | ".join(means) + " |")


if __name__ == "__main__":
    main()
