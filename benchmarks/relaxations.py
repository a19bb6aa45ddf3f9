"""The four relaxations of AP compared: how well each trains, how steadily, how far it is from AP_T.

Every run has the same encoder (one hidden layer that reads the rows), batches, steps and seeds; the
relaxation alone differs. On scikit-learn's digits, or on a benchmark protocol's data.

    python benchmarks/relaxations.py [--data FOLDER] [--seeds 3] [--bits 32] [--epochs 40]
"""

import argparse
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import torch

import rankbits
from rankbits import datasets, methods, objectives


def digits(seed: int) -> dict[str, np.ndarray]:
    data = datasets.digits()
    x = np.concatenate([data.query_x, data.database_x])
    y = np.concatenate([data.query_y, data.database_y])
    order = np.random.default_rng(seed).permutation(len(y))
    queries, database = order[:300], order[300:]
    return {"x": x, "y": y, "queries": queries, "database": database, "train": database[:500]}


def cifar(folder: str, seed: int) -> dict[str, np.ndarray]:
    with np.load(f"{folder}/cifar10_efflite0_160_pca256_f16.npz") as file:
        x = np.concatenate([file["x_train"], file["x_test"]]).astype(np.float32)
        y = np.concatenate([file["y_train"], file["y_test"]])
    rng = np.random.default_rng(seed)
    parts = [rng.permutation(np.flatnonzero(y == c)) for c in range(10)]
    pick = lambda start, end: np.concatenate([rows[start:end] for rows in parts])  # noqa: E731
    return {
        "x": x,
        "y": y,
        "queries": pick(0, 100),
        "train": pick(100, 600),
        "database": pick(100, None),
    }


def error_at_hard_codes(relaxation: str, hasher: object, data: dict[str, np.ndarray]) -> float:
    """Mean |AP_r - AP_T| of 500 training rows against each other, at codes of -1 and +1."""
    rows = data["train"][:: max(1, len(data["train"]) // 500)]
    phi = torch.from_numpy(np.where(hasher.project(data["x"][rows]) > 0, 1.0, -1.0))
    labels = torch.from_numpy(data["y"][rows].astype(np.int64))
    same = labels[:, None] == labels
    exact = objectives.relaxed_ap(phi, same)
    return float((objectives.relaxed_ap(phi, same, relaxation) - exact).abs().mean())


def run(relaxation: str, data: dict[str, np.ndarray], seed: int, bits: int, epochs: int) -> tuple:
    hasher = methods.get(
        "talr-ap",
        n_bits=bits,
        relaxation=relaxation,
        posterior=0,
        n_bins=None,
        epochs=epochs,
        random_state=seed,
        n_threads=1,
    )
    x, y, train = data["x"], data["y"], data["train"]
    hasher.fit(x[train], y[train])
    queries, database = hasher.encode(x[data["queries"]]), hasher.encode(x[data["database"]])
    same = rankbits.affinity.classes(y[data["queries"]], y[data["database"]])
    score = rankbits.evaluate(queries, database, same, ["AP"]).mean["AP"]
    losses = [record["loss"] for record in hasher.history_]
    rises = float(np.mean(np.diff(losses) > 0))
    return score, rises, error_at_hard_codes(relaxation, hasher, data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=40)
    arguments = parser.parse_args()
    name = "CIFAR-10 setting 1" if arguments.data else "digits"
    print(f"{name}, {arguments.bits} bits, {arguments.epochs} epochs, {arguments.seeds} seeds")
    print("| relaxation | AP_T of queries | epochs whose loss rose | off from AP_T at hard codes |")
    print("|---|---|---|---|")
    for relaxation in objectives.RELAXATIONS:
        results = []
        for seed in range(arguments.seeds):
            data = cifar(arguments.data, seed) if arguments.data else digits(seed)
            results.append(run(relaxation, data, seed, arguments.bits, arguments.epochs))
        scores, rises, errors = np.array(results).T
        print(
            f"| `{relaxation}` | {scores.mean():.4f} ± {scores.std(ddof=1):.4f} "
            f"| {rises.mean():.0%} | {errors.mean():.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
