"""Many classes: CLINC150, 150 intents, 10,000 labelled rows, AP_T by kind of query.

1,000 rows of the test part ask; the 18,000 rows of the other parts are ranked, 10,000 of which were
labelled in training. A seed draws the queries and the labelled rows, and is the seed of the fits.
Every model is asked in bits and by real weights, those of its one map or of its second map.

    python benchmarks/many_classes.py DATA [--bits 32 64] [--seeds 3] [--store many_classes.json]
"""

import argparse
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from class_tables import CellStore, format_mean, hash_split, print_leads, score_queries

from rankbits import methods
from rankbits.methods.training.posterior_cache import PosteriorCache

METHODS = ("talr-ap", "hashnet", "orthohash", "csq", "itq")
KINDS = ("own", "same", "real")  # values of `queries`
ONE_MAP = {"itq"}
N_LABELLED, N_QUERIES, TEST = 10_000, 1_000, 2


class Split(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    queries: np.ndarray
    items: np.ndarray
    labelled: np.ndarray


def draw_split(folder: Path, seed: int) -> Split:
    data = np.load(folder / "clinc150_minilm.npz")
    part, rng = data["split"], np.random.default_rng(seed)
    queries = rng.permutation(np.flatnonzero(part == TEST))[:N_QUERIES]
    items = np.flatnonzero(part != TEST)
    labelled = rng.permutation(np.flatnonzero(part == 0))[:N_LABELLED]
    return Split(data["x"].astype(np.float32), data["y"].astype(int), queries, items, labelled)


def fit_and_score(
    split: Split, name: str, n_bits: int, kind: str, seed: int, cache: PosteriorCache
) -> dict[str, float]:
    params = {} if name in ONE_MAP else {"queries": kind, "posterior_cache": cache}
    hasher = methods.get(name, n_bits=n_bits, random_state=seed, **params)
    hasher.fit(split.x[split.labelled], split.y[split.labelled])
    weights = hasher.project_queries(split.x[split.queries])
    bits = hasher.project(split.x[split.items]) > 0
    labels = split.y[split.queries], split.y[split.items]
    return {
        "bits": score_queries(np.where(weights > 0, 1.0, -1.0), bits, *labels),
        "real": score_queries(weights, bits, *labels),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--bits", nargs="+", type=int, default=[32, 64])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--store", type=Path, default=Path("many_classes.json"))
    options = parser.parse_args()
    store = CellStore(options.store)
    values: dict[tuple, list[dict]] = {}
    for seed in range(options.seeds):
        for cell, scores in compute_seed(options, seed, store):
            values.setdefault(cell, []).append(scores)
    print_table(options, values)
    print_leads(values, options.methods)


def compute_seed(
    options: argparse.Namespace, seed: int, store: CellStore
) -> Iterator[tuple[tuple, dict]]:
    """All cells of a seed; fits of the same seed share the class posterior."""
    split, cache = draw_split(options.data, seed), PosteriorCache()
    for kind, n_bits, name in product(options.kinds, options.bits, options.methods):
        if kind == "same" or name not in ONE_MAP:
            cell = f"{hash_split(*split[2:])} {name} {kind} {n_bits} bits, seed {seed}"
            fit = partial(fit_and_score, split, name, n_bits, kind, seed, cache)
            yield (name, kind, n_bits), store.compute(cell, fit)


def print_table(options: argparse.Namespace, values: dict[tuple, list[dict]]) -> None:
    print("| method | `queries=` | asked by | " + " | ".join(f"{n} bits" for n in options.bits))
    print("|---|---|---|" + "---|" * len(options.bits))
    for name, kind, by in product(options.methods, options.kinds, ("bits", "real")):
        if (name, kind, options.bits[0]) in values:
            cells = [format_mean([v[by] for v in values[name, kind, n]]) for n in options.bits]
            print(f"| `{name}` | {kind} | {by} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
