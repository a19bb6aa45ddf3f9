"""Classes that have no labels: pictures of 60 known classes and 40 new, texts of 100 and 50, AP_T.

A seed draws the known classes, 10,000 labelled rows of them, and the queries: 1,000 test rows of
known classes and 1,000 of new ones. The seed is that of the fits too.

- cifar100: known classes are searched among the training part's 30,000 rows of known classes, new
  ones among its 20,000 rows of new classes.
- clinc: both are searched among all 18,000 rows that are not of the test part.

A fit sees the labelled rows alone, unless the name of a row of the table says that it also sees
items without their labels. "float cosine" ranks by the features themselves.

    python benchmarks/new_classes.py DATA [--sets cifar100 clinc] [--bits 64] [--seeds 3]
        [--store new_classes.json]
"""

import argparse
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from class_tables import CellStore, format_mean, hash_split

from rankbits import affinity, evaluate, evaluate_vectors, methods
from rankbits.methods.training.posterior_cache import PosteriorCache

N_LABELLED, N_QUERIES, TEST = 10_000, 1_000, 2
N_KNOWN = {"cifar100": 60, "clinc": 100}
GROW, REAL, GROUPS = {"classes": "grow"}, {"queries": "real"}, {"n_groups": 256}


class Recipe(NamedTuple):
    """A method, its parameters, and the share of the items without a label that its fit sees."""

    method: str
    params: dict[str, Any]
    has_real_queries: bool
    unlabelled: float = 0.0


METHODS = {
    "float cosine": Recipe("float", {}, True),
    "itq": Recipe("itq", {}, False),
    "itq, real queries": Recipe("itq", {}, True),
    "talr-ap": Recipe("talr-ap", {}, False),
    "talr-ap, real queries": Recipe("talr-ap", REAL, True),
    "talr-ap, linear": Recipe("talr-ap", {"encoder": "linear"}, False),
    "talr-ap, linear, real queries": Recipe("talr-ap", {"encoder": "linear"}, True),
    "hashnet": Recipe("hashnet", {}, False),
    "talr-ap, grow": Recipe("talr-ap", GROW, False),
    "talr-ap, grow, real queries": Recipe("talr-ap", {**GROW, **REAL}, True),
    "additive, grow": Recipe("additive", GROW, True),
    "additive, grow, half of the items": Recipe("additive", GROW, True, 0.5),
    "additive, grow, all items": Recipe("additive", GROW, True, 1.0),
    "additive, no labels, all items": Recipe("additive", {}, True, 1.0),
    "additive, no labels, groups, all items": Recipe("additive", GROUPS, True, 1.0),
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


def load_parts(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features and classes of the items, and of the test part."""
    if name == "clinc":
        data = np.load(folder / "clinc150_minilm.npz")
        x, y, is_test = data["x"].astype(np.float32), data["y"].astype(int), data["split"] == TEST
        return x[~is_test], y[~is_test], x[is_test], y[is_test]
    data = np.load(folder / "cifar100_efflite0_160_pca256_f16.npz")
    x, query_x = (data[name].astype(np.float32) for name in ("x_train", "x_test"))
    return x, data["y_train"].astype(int), query_x, data["y_test"].astype(int)


def draw_split(folder: Path, name: str, seed: int) -> Split:
    x, y, query_x, query_y = load_parts(folder, name)
    rng = np.random.default_rng(seed)
    known, new = np.split(rng.permutation(y.max() + 1), [N_KNOWN[name]])
    queries, items = {}, {}
    for part, classes in (("new", new), ("known", known)):
        queries[part] = rng.permutation(np.flatnonzero(np.isin(query_y, classes)))[:N_QUERIES]
        items[part] = np.flatnonzero(np.isin(y, classes))
    labelled = rng.permutation(items["known"])[:N_LABELLED]
    if name == "clinc":
        items = dict.fromkeys(items, np.arange(len(y)))
    return Split(x, y, query_x, query_y, labelled, queries, items)


def choose_training(split: Split, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of a fit: the labelled rows, and a share of the others, labelled -1."""
    if not share:
        return split.x[split.labelled], split.y[split.labelled]
    others = np.setdiff1d(np.arange(len(split.y)), split.labelled)
    drawn = np.random.default_rng(seed).permutation(others)[: round(share * len(others))]
    y = np.concatenate([split.y[split.labelled], np.full(len(drawn), -1)])
    return split.x[np.concatenate([split.labelled, drawn])], y


def score_vectors(split: Split) -> dict[str, float]:
    scores = {}
    for part in ("new", "known"):
        queries, items = split.queries[part], split.items[part]
        relevant = affinity.classes(split.query_y[queries], split.y[items])
        evaluation = evaluate_vectors(split.query_x[queries], split.x[items], relevant, "AP")
        scores[part] = evaluation.mean["AP"]
    return {**scores, "seconds": 0.0}


def fit_and_score(
    split: Split, recipe: Recipe, n_bits: int, seed: int, cache: PosteriorCache
) -> dict[str, float]:
    """AP_T on both kinds of classes, and the seconds of the fit."""
    if recipe.method == "float":
        return score_vectors(split)
    params = recipe.params
    if recipe.method not in ("itq", "additive"):
        params = {**params, "posterior_cache": cache}
    hasher = methods.get(recipe.method, n_bits=n_bits, random_state=seed, **params)
    start = time.perf_counter()
    hasher.fit(*choose_training(split, recipe.unlabelled, seed))
    scores = {"seconds": time.perf_counter() - start}
    weights, codes = hasher.project_queries(split.query_x), hasher.encode(split.x)
    if not recipe.has_real_queries:
        weights = np.where(weights > 0, 1.0, -1.0)
    for part in ("new", "known"):
        queries, items = split.queries[part], split.items[part]
        relevant = affinity.classes(split.query_y[queries], split.y[items])
        evaluation = evaluate(None, codes[items], relevant, "AP", query_weights=weights[queries])
        scores[part] = evaluation.mean["AP"]
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", choices=N_KNOWN, default=list(N_KNOWN))
    parser.add_argument("--bits", nargs="+", type=int, default=[64])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--store", type=Path, default=Path("new_classes.json"))
    options = parser.parse_args()
    store = CellStore(options.store)
    values: dict[tuple[str, str, int], list[dict]] = {}
    for name, seed in product(options.sets, range(options.seeds)):
        split, cache = draw_split(options.data, name, seed), PosteriorCache()
        for label, n_bits in product(options.methods, options.bits):
            fit = partial(fit_and_score, split, METHODS[label], n_bits, seed, cache)
            cell = store.compute(f"{split.hash()} {label} {n_bits} bits, seed {seed}", fit)
            values.setdefault((name, label, n_bits), []).append(cell)
    print(
        "| set | method | bits | new classes | known classes | fit, s |\n|---|---|---|---|---|---|"
    )
    for (name, label, n_bits), cells in values.items():
        new, known = (format_mean([cell[part] for cell in cells]) for part in ("new", "known"))
        seconds = np.mean([cell["seconds"] for cell in cells])
        print(f"| {name} | {label} | {n_bits} | {new} | {known} | {seconds:.0f} |")


if __name__ == "__main__":
    main()
