"""What teaches codes without labels: one distance for all queries, or each query's own ranking.

    thresholds  the distances of the nearest 0.1, 0.2, 1 and 5 % of all training pairs have the
                levels 10, 5, 2 and 1
    ranks       y=None: for NDCG a row's own first 10, 50, 200 and 1,000 have these levels, for AP
                its first 10 are relevant

Documents of NPL and Cranfield and requests of CLINC150, 4,000 of them at most to learn from, which
are the items too; rows held out of the training ask, other ones for every seed. `nDCG` is nDCG@10
with the levels of four ranks by cosine, `overlap` is the share of the float top 10 among the first
10; both by Hamming distance and by real-valued query. Cells stay in OUT, so that a run may be
stopped.

    python benchmarks/teacher_ranks.py DATA [--out OUT] [--sets npl] [--bits 64] [--seeds 3]
"""

import argparse
import json
from pathlib import Path

import numpy as np

from rankbits import affinity, evaluate, methods
from rankbits.evaluation import nearest_vectors

SHARES, LEVELS = (0.001, 0.002, 0.01, 0.05), (10, 5, 2, 1)
MEASURES = ("nDCG@10", "overlap@10")


def npl(folder: Path) -> np.ndarray:
    return np.load(folder / "npl_minilm.npz")["documents"]


def clinc(folder: Path) -> np.ndarray:
    return np.load(folder / "clinc150_minilm.npz")["x"]


def cranfield(folder: Path) -> np.ndarray:
    return np.load(folder / "cranfield_minilm.npz")["documents"]


SETS = {"npl": npl, "clinc": clinc, "cranfield": cranfield}
TEACHERS = ("thresholds", "ranks", "none")  # none: itq, where the maps start
MOST_ITEMS = 4000


def fit(items: np.ndarray, method: str, teacher: str, n_bits: int, seed: int):
    if teacher == "none":
        return methods.get("itq", n_bits=n_bits, random_state=seed).fit(items)
    y = None
    if teacher == "thresholds":
        y = affinity.neighbours(items, items, affinity.distance_quantiles(items, SHARES), LEVELS)
    return methods.get(method, n_bits=n_bits, random_state=seed).fit(items, y)


def measure(rows: np.ndarray, method: str, teacher: str, n_bits: int, seed: int) -> dict:
    rows = rows[np.random.default_rng([seed, 2]).permutation(len(rows))].astype(np.float32)
    n_queries = min(500, len(rows) // 7)
    queries, items = rows[:n_queries], rows[n_queries : n_queries + MOST_ITEMS]
    hasher = fit(items, method, teacher, n_bits, seed)
    truth = affinity.nearest_ranks(queries, items)
    nearest = nearest_vectors(queries, items, 10)
    asked = hasher.encode_queries(queries), hasher.encode(items)
    weights = hasher.project_queries(queries)
    values = {}
    for kind, options in {"bits": {}, "real": {"query_weights": weights}}.items():
        score = evaluate(*asked, truth, MEASURES, reference=nearest, **options).mean
        values |= {f"{name} {kind}": score[name] for name in MEASURES}
    return values


def measure_once(rows: np.ndarray, key: str, out: Path, *cell) -> list[float]:
    """The values of a cell, from the file if they are in it."""
    cells = json.loads(out.read_text()) if out.exists() else {}
    if key not in cells:
        values = measure(rows, *cell)
        cells = json.loads(out.read_text()) if out.exists() else {}
        cells[key] = values
        out.write_text(json.dumps(cells, indent=1))
    return list(cells[key].values())


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
        rows = SETS[set_name](options.data)
        for n_bits in options.bits:
            for teacher in options.teachers:
                name = "itq" if teacher == "none" else options.method
                runs = [
                    measure_once(
                        rows,
                        f"{set_name} {n_bits} {name} {teacher} {seed}",
                        options.out,
                        name,
                        teacher,
                        n_bits,
                        seed,
                    )
                    for seed in range(options.seeds)
                ]
                mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0)
                text = " | ".join(f"{m:.4f} ± {s:.4f}" for m, s in zip(mean, spread, strict=True))
                print(f"| {set_name} | {n_bits} | {teacher} | {text} |", flush=True)


if __name__ == "__main__":
    main()
