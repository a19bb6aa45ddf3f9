"""How codes are spread: DSH against dispersed DSH, and what dispersion costs TALR.

The table re-runs Table 1 of Ding, Li and Li, "Mean local group average precision (mLGAP)", on
features of CIFAR-10 and CIFAR-100; the curve is AP_T against mLGAP@2 of talr-ap over weights of
either penalty, on CIFAR-10 setting 1. Without --data both run on scikit-learn's digits.

    python benchmarks/dispersion.py [--data FOLDER] [--seeds 3] [--part table] [--out FOLDER]
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

from rankbits import BinaryCodes, datasets, evaluate, methods, metrics, report
from rankbits.benchmark import Protocol, SameClass, StandardParts, protocol
from rankbits.methods import PosteriorCache

PROTOCOLS = ["mlgap-cifar10", "mlgap-cifar100"]
METHODS = ("lsh", "dsh", "dsh-dispersed")
WEIGHTS = {
    "collisions": (0.3, 1.0, 3.0, 10.0),
    "correlation": (0.3, 1.0, 3.0),
}
COLUMNS = ("AP", "LGAP@r2", "codes", "entropy")
Scores = dict[str, float]


def digits() -> datasets.Labelled:
    data = datasets.digits()
    x = np.concatenate([data.database_x, data.query_x])
    y = np.concatenate([data.database_y, data.query_y])
    return datasets.Labelled(x, y, np.arange(len(y)) >= len(data.database_y))


def data_of(chosen: Protocol, folder: str | None) -> datasets.Labelled:
    if folder is None:
        return digits()
    (file,) = [
        path for path in Path(folder).glob(f"{chosen.data}_*.npz") if "webp" not in path.name
    ]
    return datasets.load_features(file)


def measured(hasher: object, task: object) -> tuple[Scores, BinaryCodes]:
    queries, database = hasher.encode(task.query_x), hasher.encode(task.database_x)
    use = metrics.code_use(database)
    scores = evaluate(queries, database, task.affinity, ["AP", "LGAP@r2"]).mean
    return {**scores, "codes": use.n_distinct, "entropy": use.entropy_bits}, database


def cell(values: list[float]) -> str:
    n_decimals = 4 if max(values) < 1 else 2 if max(values) < 100 else 0
    spread = f" ± {np.std(values, ddof=1):.{n_decimals}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{n_decimals}f}{spread}"


def published(chosen: Protocol, method: str, bits: int) -> str:
    name = {"dsh": "DSH", "dsh-dispersed": "dispersed DSH"}.get(method)
    tables = {result.metric: result.values.get(name, {}) for result in chosen.published}
    scores = [tables.get(metric, {}).get(bits) for metric in ("AP", "LGAP@r2")]
    return " / ".join("" if value is None else f"{value:.4f}" for value in scores).strip(" /")


def variants(chosen: Protocol) -> Iterator[tuple[str, str, dict]]:
    """Label, method and parameters; of CIFAR-100 also DSH that learns from classes alone."""
    for method in METHODS:
        yield method, method, dict(chosen.defaults.get(method, {}))
        if method == "dsh" and chosen.name == "mlgap-cifar100":
            yield "dsh, classes alone", method, {**chosen.defaults[method], "least_level": 2}


def table(names: list[str], folder: str | None, n_seeds: int, out: Path) -> None:
    print(
        "| data | bits | method | AP_T | mLGAP@2 | codes used | entropy, bits | paper: AP / mLGAP |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        chosen = protocol(name)
        data = data_of(chosen, folder)
        task = chosen.relevance.task(data, chosen.split.draw(data, 0))
        for bits in chosen.bits:
            rows(chosen, task, bits, n_seeds, out, data="digits" if folder is None else chosen.data)


def rows(chosen: Protocol, task: object, bits: int, n_seeds: int, out: Path, data: str) -> None:
    first_codes = {}
    for label, method, params in variants(chosen):
        results = []
        for seed in range(n_seeds):
            threads = {"n_threads": 1} if method != "lsh" else {}
            hasher = methods.get(method, n_bits=bits, random_state=seed, **params, **threads)
            scores, codes = measured(hasher.fit(task.training_x, task.training_y), task)
            results.append(scores)
            first_codes.setdefault(label, codes)
        cells = " | ".join(cell([scores[column] for scores in results]) for column in COLUMNS)
        result = published(chosen, label, bits) if data != "digits" else ""
        print(f"| {data} | {bits} | {label} | {cells} | {result} |", flush=True)
    shown = {label: first_codes[label] for label in ("dsh", "dsh-dispersed")}
    (out / f"code_use_{data}_{bits}.svg").write_text(report.code_use_plot(shown))


def curve(folder: str | None, n_seeds: int, bits: int, out: Path) -> None:
    chosen = protocol("cifar10-s1")
    data, split = data_of(chosen, folder), StandardParts() if folder is None else chosen.split
    points: dict[tuple[str, float], list[Scores]] = {}
    for seed in range(n_seeds):
        cache = PosteriorCache()  # the fits of a seed share their class posterior
        task = SameClass().task(data, split.draw(data, seed))
        for kind, weight in [("none", 0.0), *((k, w) for k in WEIGHTS for w in WEIGHTS[k])]:
            kinds = {} if kind == "none" else {"dispersion": weight, "dispersion_kind": kind}
            common = {"n_bits": bits, "random_state": seed, "n_threads": 1}
            hasher = methods.get("talr-ap", posterior_cache=cache, **common, **kinds)
            scores, _ = measured(hasher.fit(task.training_x, task.training_y), task)
            points.setdefault((kind, weight), []).append(scores)
            print(f"seed {seed}, {kind} {weight:g}: {scores}", file=sys.stderr, flush=True)
    print(f"| penalty, {bits} bits | weight | AP_T | mLGAP@2 | codes used | entropy, bits |")
    print("|---|---|---|---|---|---|")
    for (kind, weight), results in points.items():
        cells = " | ".join(cell([scores[column] for scores in results]) for column in COLUMNS)
        print(f"| {kind} | {weight:g} | {cells} |", flush=True)
    lines = {kind: [point(points, "none", 0.0)] for kind in WEIGHTS}
    for kind, weights in WEIGHTS.items():
        lines[kind] += [point(points, kind, weight) for weight in weights]
    svg = report.trade_plot(lines, ("AP_T", "mLGAP@2"))
    (out / f"trade_{'digits' if folder is None else 'cifar10'}_{bits}.svg").write_text(svg)


def point(points: dict, kind: str, weight: float) -> tuple[float, float, str]:
    ap, lgap = (
        float(np.mean([scores[name] for scores in points[kind, weight]])) for name in COLUMNS[:2]
    )
    return ap, lgap, f"{weight:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--part", choices=["table", "curve", "all"], default="all")
    parser.add_argument("--protocol", action="append", choices=PROTOCOLS, help="of the table")
    parser.add_argument("--bits", type=int, default=24, help="of the curve")
    parser.add_argument("--out", type=Path, default=Path())
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.part != "curve":
        names = arguments.protocol or (PROTOCOLS if arguments.data else PROTOCOLS[:1])
        table(names, arguments.data, arguments.seeds, arguments.out)
    if arguments.part != "table":
        curve(arguments.data, arguments.seeds, arguments.bits, arguments.out)


if __name__ == "__main__":
    main()
