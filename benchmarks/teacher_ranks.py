"""What teaches codes without labels: one distance for all queries, or each query's own ranking.

Documents of NPL and Cranfield and requests of CLINC150. Rows held out of the training ask, and the
training rows are the items. `nDCG` is nDCG@10 with levels 10, 5, 2, 1 for a query's own first 10,
50, 200, 1,000 items by cosine, `overlap` is the share of the float top 10 among the first 10; both
by Hamming distance and by real-valued query. Cells stay in OUT, so that a run may be stopped.

    python benchmarks/teacher_ranks.py DATA [--out OUT] [--sets npl] [--bits 64] [--seeds 3]
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rankbits import affinity, evaluate, methods
from rankbits.evaluation import nearest_vectors

SHARES, LEVELS = (0.001, 0.002, 0.01, 0.05), (10, 5, 2, 1)
MEASURES = ("nDCG@10", "overlap@10")


def npl(folder: Path) -> tuple[np.ndarray, int]:
    return np.load(folder / "npl_minilm.npz")["documents"], 500


def clinc(folder: Path) -> tuple[np.ndarray, int]:
    rows = np.load(folder / "clinc150_minilm.npz")["x"]
    return rows[np.random.default_rng(1).permutation(len(rows))[:8500]], 500


def cranfield(folder: Path) -> tuple[np.ndarray, int]:
    return np.load(folder / "cranfield_minilm.npz")["documents"], 200


SETS = {"npl": npl, "clinc": clinc, "cranfield": cranfield}


def thresholds(x: np.ndarray) -> affinity.Affinity:
    """Levels by the distances of the nearest 0.1, 0.2, 1 and 5 % of all training pairs."""
    return affinity.neighbours(x, x, affinity.distance_quantiles(x, SHARES), LEVELS)


def ranks(x: np.ndarray) -> affinity.Affinity:
    """Levels by the first 10, 50, 200 and 1,000 of each row's own ranking."""
    return affinity.nearest_ranks(x, x, metric="l2", exclude_self=True)


def rank_shares(x: np.ndarray) -> affinity.Affinity:
    """Levels by the first 0.1, 0.2, 1 and 5 % of each row's own ranking."""
    level_of: dict[int, int] = {}
    for share, level in zip(SHARES, LEVELS, strict=True):
        level_of.setdefault(max(1, round(share * len(x))), level)
    numbers, levels = list(level_of), list(level_of.values())
    return affinity.nearest_ranks(x, x, numbers, levels, metric="l2", exclude_self=True)


TEACHERS: dict[str, Callable[[np.ndarray], affinity.Affinity] | None] = {
    "thresholds": thresholds,
    "ranks": ranks,
    "rank-shares": rank_shares,
    "itq": None,
}


def measure(rows: np.ndarray, n_queries: int, method: str, teacher: str, n_bits: int, seed: int):
    rows = rows.astype(np.float32)
    rows = rows[np.random.default_rng([seed, 2]).permutation(len(rows))]
    queries, items = rows[:n_queries], rows[n_queries:]
    build = TEACHERS[teacher]
    if build is None:
        hasher = methods.get("itq", n_bits=n_bits, random_state=seed).fit(items)
    else:
        hasher = methods.get(method, n_bits=n_bits, random_state=seed).fit(items, build(items))
    truth = affinity.nearest_ranks(queries, items)
    nearest = nearest_vectors(queries, items, 10)
    asked = hasher.encode_queries(queries), hasher.encode(items)
    weights = hasher.project_queries(queries)
    values = {}
    for kind, options in {"bits": {}, "real": {"query_weights": weights}}.items():
        score = evaluate(*asked, truth, MEASURES, reference=nearest, **options).mean
        values |= {f"{name} {kind}": score[name] for name in MEASURES}
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("teacher_ranks.json"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--bits", nargs="+", type=int, default=[64, 128, 256])
    parser.add_argument("--method", default="talr-ndcg")
    parser.add_argument("--teachers", nargs="+", choices=TEACHERS, default=list(TEACHERS))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print("| set | bits | teacher | nDCG bits | overlap bits | nDCG real | overlap real |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for set_name in options.sets:
        rows, n_queries = SETS[set_name](options.data)
        for n_bits in options.bits:
            for teacher in options.teachers:
                runs = []
                for seed in range(options.seeds):
                    name = "itq" if TEACHERS[teacher] is None else options.method
                    key = f"{set_name} {n_bits} {name} {teacher} {seed}"
                    cells = json.loads(options.out.read_text()) if options.out.exists() else {}
                    if key not in cells:
                        value = measure(rows, n_queries, options.method, teacher, n_bits, seed)
                        cells = json.loads(options.out.read_text()) if options.out.exists() else {}
                        options.out.write_text(json.dumps(cells | {key: value}, indent=1))
                        cells[key] = value
                    runs.append(list(cells[key].values()))
                mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0)
                text = " | ".join(f"{m:.4f} ± {s:.4f}" for m, s in zip(mean, spread, strict=True))
                print(f"| {set_name} | {n_bits} | {teacher} | {text} |", flush=True)


if __name__ == "__main__":
    main()
