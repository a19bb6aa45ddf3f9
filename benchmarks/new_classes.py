"""Classes that training has not seen: CIFAR-100 features, 60 classes known and 40 new, AP_T.

A seed draws the 60 classes, 10,000 labelled rows of them, and the queries: 1,000 test rows of known
classes and 1,000 of new ones. Known classes are searched among the training part's 30,000 rows of
known classes, new ones among its 20,000 rows of new classes. The seed is that of the fits too.

    python benchmarks/new_classes.py DATA [--bits 64] [--seeds 3] [--store new_classes.json]
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from class_tables import CellStore, format_mean, hash_split

from rankbits import affinity, evaluate, methods
from rankbits.methods.training.posterior_cache import PosteriorCache

N_KNOWN, N_LABELLED, N_QUERIES = 60, 10_000, 1_000
GROW, REAL = {"classes": "grow"}, {"queries": "real"}
METHODS: dict[str, tuple[str, dict[str, Any], bool]] = {  # the last: whether queries are real
    "itq": ("itq", {}, False),
    "itq, real queries": ("itq", {}, True),
    "talr-ap": ("talr-ap", {}, False),
    "talr-ap, real queries": ("talr-ap", REAL, True),
    "talr-ap, linear": ("talr-ap", {"encoder": "linear"}, False),
    "talr-ap, linear, real queries": ("talr-ap", {"encoder": "linear"}, True),
    "hashnet": ("hashnet", {}, False),
    "talr-ap, grow": ("talr-ap", GROW, False),
    "talr-ap, grow, real queries": ("talr-ap", {**GROW, **REAL}, True),
    "additive, grow": ("additive", GROW, True),
}


class Split(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    query_x: np.ndarray
    query_y: np.ndarray
    labelled: np.ndarray
    queries: dict[str, np.ndarray]
    items: dict[str, np.ndarray]

    def hash(self) -> str:
        return hash_split(self.labelled, *self.queries.values(), *self.items.values())


def draw_split(folder: Path, seed: int) -> Split:
    data = np.load(folder / "cifar100_efflite0_160_pca256_f16.npz")
    x, query_x = (data[name].astype(np.float32) for name in ("x_train", "x_test"))
    y, query_y = (data[name].astype(int) for name in ("y_train", "y_test"))
    rng = np.random.default_rng(seed)
    known, new = np.split(rng.permutation(100), [N_KNOWN])
    queries, items = {}, {}
    for part, classes in (("new", new), ("known", known)):
        queries[part] = rng.permutation(np.flatnonzero(np.isin(query_y, classes)))[:N_QUERIES]
        items[part] = np.flatnonzero(np.isin(y, classes))
    labelled = rng.permutation(items["known"])[:N_LABELLED]
    return Split(x, y, query_x, query_y, labelled, queries, items)


def fit_and_score(
    split: Split,
    name: str,
    params: dict[str, Any],
    is_real: bool,
    n_bits: int,
    seed: int,
    cache: PosteriorCache,
) -> dict[str, float]:
    if name not in ("itq", "additive"):
        params = {**params, "posterior_cache": cache}
    hasher = methods.get(name, n_bits=n_bits, random_state=seed, **params)
    hasher.fit(split.x[split.labelled], split.y[split.labelled])
    weights, codes = hasher.project_queries(split.query_x), hasher.encode(split.x)
    if not is_real:
        weights = np.where(weights > 0, 1.0, -1.0)
    scores = {}
    for part in ("new", "known"):
        queries, items = split.queries[part], split.items[part]
        relevant = affinity.classes(split.query_y[queries], split.y[items])
        evaluation = evaluate(None, codes[items], relevant, "AP", query_weights=weights[queries])
        scores[part] = evaluation.mean["AP"]
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--bits", nargs="+", type=int, default=[64])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--store", type=Path, default=Path("new_classes.json"))
    options = parser.parse_args()
    store = CellStore(options.store)
    values: dict[tuple[str, int], list[dict]] = {}
    for seed in range(options.seeds):
        split, cache = draw_split(options.data, seed), PosteriorCache()
        for label in options.methods:
            for n_bits in options.bits:
                fit = partial(fit_and_score, split, *METHODS[label], n_bits, seed, cache)
                cell = store.compute(f"{split.hash()} {label} {n_bits} bits, seed {seed}", fit)
                values.setdefault((label, n_bits), []).append(cell)
    print("| method | bits | new classes | known classes |\n|---|---|---|---|")
    for (label, n_bits), cells in values.items():
        new, known = (format_mean([cell[part] for cell in cells]) for part in ("new", "known"))
        print(f"| {label} | {n_bits} | {new} | {known} |")


if __name__ == "__main__":
    main()
