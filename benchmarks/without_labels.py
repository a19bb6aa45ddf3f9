"""Codes learned without labels: `itq` against the tie-aware methods with a linear map and an MLP.

Text: documents are encoded, the collection's own queries ask, nDCG@10 by its judgements. Pictures:
5,000 training rows, 1,000 queries against 50,000 items. `near` is nDCG@10 where the levels are
those that y=None trains for: a query's items within the distances of the nearest 5, 1, 0.2 and
0.1 % of training pairs. Nothing is chosen here: every method runs with its defaults.

    python benchmarks/without_labels.py DATA [--sets npl cranfield cifar] [--bits 64] [--seeds 3]
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankbits import affinity, evaluate, methods

METHODS = {
    "itq": ("itq", {}),
    "talr-ndcg, default": ("talr-ndcg", {}),
    "talr-ndcg, mlp": ("talr-ndcg", {"encoder": "mlp"}),
    "talr-ap, default": ("talr-ap", {}),
    "talr-ap, mlp": ("talr-ap", {"encoder": "mlp"}),
}
SHARES, LEVELS = (0.05, 0.01, 0.002, 0.001), (1, 2, 5, 10)


@dataclass
class Collection:
    train: np.ndarray
    queries: np.ndarray
    items: np.ndarray
    relevance: affinity.Affinity
    metric: str


def npl(folder: Path) -> Collection:
    data = np.load(folder / "npl_minilm.npz")
    queries, items = (data[name].astype(np.float32) for name in ("queries", "documents"))
    relevance = affinity.judgements(data["qrels"], len(queries), len(items))
    return Collection(items, queries, items, relevance, "nDCG@10")


def cranfield(folder: Path) -> Collection:
    data = np.load(folder / "cranfield_minilm.npz")
    queries, items = (data[name].astype(np.float32) for name in ("queries", "documents"))
    qrels = np.load(folder / "cranfield.npz")["qrels"]
    qrels = qrels[(qrels[:, 2] >= 1) & (qrels[:, 2] <= 4)]
    rows = np.stack([qrels[:, 0] - 1, qrels[:, 1] - 1, 5 - qrels[:, 2]], axis=1)
    relevance = affinity.judgements(rows, len(queries), len(items))
    return Collection(items, queries, items, relevance, "nDCG@10")


def cifar(folder: Path) -> Collection:
    data = np.load(folder / "cifar10_efflite0_160_pca256_f16.npz")
    rng = np.random.default_rng(0)
    train, chosen = rng.permutation(50_000)[:5000], rng.permutation(10_000)[:1000]
    items, queries = data["x_train"].astype(np.float32), data["x_test"][chosen].astype(np.float32)
    relevance = affinity.classes(data["y_test"][chosen], data["y_train"])
    return Collection(items[train], queries, items, relevance, "AP")


SETS: dict[str, Callable[[Path], Collection]] = {"npl": npl, "cranfield": cranfield, "cifar": cifar}


def score(data: Collection, near: affinity.Affinity, name: str, params: dict, seed: int) -> tuple:
    start = time.perf_counter()
    hasher = methods.get(name, random_state=seed, **params).fit(data.train)
    seconds = time.perf_counter() - start
    queries, items = hasher.encode(data.queries), hasher.encode(data.items)
    judged = evaluate(queries, items, data.relevance, data.metric).mean[data.metric]
    return judged, evaluate(queries, items, near, "nDCG@10").mean["nDCG@10"], seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--bits", nargs="+", type=int, default=[64, 128, 256])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print("| set | bits | method | judged | near | seconds |\n|---|---|---|---|---|---|")
    for set_name in options.sets:
        data = SETS[set_name](options.data)
        thresholds = affinity.distance_quantiles(data.train, SHARES)
        near = affinity.neighbours(data.queries, data.items, thresholds, LEVELS)
        for n_bits in options.bits:
            for label in options.methods:
                name, params = METHODS[label]
                runs = [
                    score(data, near, name, {"n_bits": n_bits, **params}, seed)
                    for seed in range(options.seeds)
                ]
                mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0)
                cells = [f"{mean[i]:.4f} ± {spread[i]:.4f}" for i in (0, 1)]
                print(f"| {set_name} ({data.metric}) | {n_bits} | {label} | {' | '.join(cells)} | "
                      f"{mean[2]:.1f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
