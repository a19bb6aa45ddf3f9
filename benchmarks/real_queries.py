"""Real-valued queries against codes learned without labels, beside the quantizers of faiss.

    npl     nDCG@10 of the collection's own 93 queries and judgements, 11,426 documents
    clinc   AP, 1,000 test requests against the other 21,500; relevant is the same intent
    cifar   share of the float top 10 within the first 100: 500 queries, 59,500 items, trained on
            20,000 rows; features at unit norm

Every method sees the rows only, at the same bytes an item; nothing is re-ranked. Methods run with
their defaults, but for recipes for large groups of rows: `distilled-groups` (256 groups,
temperature 0.4) and `additive-groups` (256 groups). Finished cells stay in the file OUT, so that a
run may be stopped and taken up again.

    python benchmarks/real_queries.py DATA [--out OUT] [--sets npl] [--bytes 8] [--methods itq]
"""

import argparse
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankbits import methods
from rankbits.codes import hamming_distances
from rankbits.codes.sums import bits_to_entries


@dataclass
class Collection:
    train: np.ndarray
    queries: np.ndarray
    items: np.ndarray
    measure: Callable[[np.ndarray], float]  # of scores (queries, items)

    def digest(self) -> str:
        parts = (self.train, self.queries, self.items)
        return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:12]


def unit(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def npl(folder: Path) -> Collection:
    data = np.load(folder / "npl_minilm.npz")
    queries, items = unit(data["queries"]), unit(data["documents"])
    relevant = np.zeros((len(queries), len(items)), bool)
    relevant[data["qrels"][:, 0], data["qrels"][:, 1]] = True
    return Collection(items, queries, items, lambda scores: ndcg(scores, relevant))


def clinc(folder: Path) -> Collection:
    data = np.load(folder / "clinc150_minilm.npz")
    rows, labels = unit(data["x"]), data["y"]
    tests = np.flatnonzero(data["split"] == 2)
    asked = np.sort(np.random.default_rng(0).permutation(tests)[:1000])
    others = np.setdiff1d(np.arange(len(rows)), asked)
    relevant = labels[asked][:, None] == labels[others]
    items = rows[others]
    return Collection(items, rows[asked], items, lambda scores: average_precision(scores, relevant))


def cifar(folder: Path) -> Collection:
    data = np.load(folder / "cifar10_efflite0_160_pca256_f16.npz")
    rows = unit(np.concatenate([data["x_train"], data["x_test"]]))
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    queries, items = rows[:500], rows[500:]
    nearest = first(queries @ items.T, 10)
    return Collection(items[:20_000], queries, items, lambda scores: share(scores, nearest))


SETS = {"npl": npl, "clinc": clinc, "cifar": cifar}


def first(scores: np.ndarray, k: int) -> np.ndarray:
    """The k items of largest score for each query, best first."""
    best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def share(scores: np.ndarray, nearest: np.ndarray) -> float:
    lists = zip(nearest, first(scores, 100), strict=True)
    return float(np.mean([np.isin(exact, ranked).mean() for exact, ranked in lists]))


def ndcg(scores: np.ndarray, relevant: np.ndarray) -> float:
    discounts = 1 / np.log2(np.arange(2, 12))
    gains = np.take_along_axis(relevant, first(scores, 10), axis=1) @ discounts
    ideal = np.array([discounts[: min(10, n)].sum() for n in relevant.sum(axis=1)])
    return float(np.mean(gains[ideal > 0] / ideal[ideal > 0]))


def average_precision(scores: np.ndarray, relevant: np.ndarray) -> float:
    ranked = np.take_along_axis(relevant, np.argsort(-scores, axis=1, kind="stable"), axis=1)
    precision = np.cumsum(ranked, axis=1) / np.arange(1, ranked.shape[1] + 1)
    return float(np.mean((precision * ranked).sum(axis=1) / ranked.sum(axis=1)))


def bits(name: str, **params: object) -> Callable[[Collection, int, int], np.ndarray]:
    """A method of ours, by the scores of `search_real`."""

    def score(data: Collection, n_bytes: int, seed: int) -> np.ndarray:
        hasher = methods.get(name, n_bits=8 * n_bytes, **params)
        if "random_state" in hasher.get_params():
            hasher.set_params(random_state=seed)
        hasher.fit(data.train)
        weights, codes = hasher.project_queries(data.queries), hasher.encode(data.items).bits()
        if weights.shape[1] == codes.shape[1]:
            return weights.astype(np.float32) @ (2 * codes.astype(np.float32) - 1).T
        return add_entries(weights.astype(np.float32), bits_to_entries(codes))

    return score


def add_entries(tables: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Sums of the numbers that the entries of items name in the tables of queries."""
    scores = np.zeros((len(tables), len(entries)), np.float32)
    for book, column in enumerate(entries.T):
        scores += tables[:, 16 * book + column.astype(int)]
    return scores


def hamming(name: str) -> Callable[[Collection, int, int], np.ndarray]:
    """The same bits on both sides, ranked by Hamming distance; ties are broken at random."""

    def score(data: Collection, n_bytes: int, seed: int) -> np.ndarray:
        hasher = methods.get(name, n_bits=8 * n_bytes, random_state=seed).fit(data.train)
        distances = hamming_distances(
            hasher.encode_queries(data.queries), hasher.encode(data.items)
        )
        return np.random.default_rng(seed).random(distances.shape) - distances

    return score


def quantizer(factory: str) -> Callable[[Collection, int, int], np.ndarray]:
    """A quantizer of faiss that reconstructs items; a seed is an order of the training rows."""

    def score(data: Collection, n_bytes: int, seed: int) -> np.ndarray:
        import faiss

        index = faiss.index_factory(data.train.shape[1], factory.format(n_bytes))
        index.train(shuffle(data.train, seed))
        index.add(data.items)
        return data.queries @ index.reconstruct_n(0, len(data.items)).T

    return score


def rabitq(data: Collection, n_bytes: int, seed: int) -> np.ndarray:
    """RaBitQ on as many principal directions as leave 8 bytes for the factors of an item."""
    import faiss

    n_directions = 8 * (n_bytes - 8)
    mean = data.train.mean(axis=0)
    _, vectors = np.linalg.eigh((data.train - mean).T @ (data.train - mean))
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((n_directions,) * 2))[0]
    basis = (vectors[:, ::-1][:, :n_directions] @ turn).astype(np.float32)
    index = faiss.IndexRaBitQ(n_directions, faiss.METRIC_INNER_PRODUCT)
    index.train((data.train - mean) @ basis)
    index.add((data.items - mean) @ basis)
    similarities, ids = index.search(data.queries @ basis, len(data.items))
    scores = np.empty_like(similarities)
    np.put_along_axis(scores, ids, similarities, axis=1)
    return scores


def shuffle(rows: np.ndarray, seed: int) -> np.ndarray:
    return rows[np.random.default_rng(seed).permutation(len(rows))]


METHODS = {
    "distilled": bits("distilled"),
    "distilled-groups": bits("distilled", temperature=0.4, n_groups=256),
    "additive": bits("additive"),
    "additive-groups": bits("additive", n_groups=256),
    "talr-ndcg": bits("talr-ndcg"),
    "itq": bits("itq"),
    "sign": bits("sign"),
    "itq-hamming": hamming("itq"),
    "PQ": quantizer("PQ{0}x8"),
    "OPQ": quantizer("OPQ{0},PQ{0}x8"),
    "RQ": quantizer("RQ{0}x8"),
    "RaBitQ": rabitq,
}
UNSEEDED = {"sign"}
LEFT_OUT = {
    ("RaBitQ", 8),
    ("RQ", 32),
}  # factors fill 8 bytes; RQ with 32 codebooks trains for hours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("real_queries.json"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--bytes", nargs="+", type=int, default=[8, 16, 32])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    cells = json.loads(options.out.read_text()) if options.out.exists() else {}
    for set_name in options.sets:
        data = SETS[set_name](options.data)
        exact = data.measure(data.queries @ data.items.T)
        store(options.out, f"{set_name} {data.digest()} float 0 0", exact)
        print(f"\n{set_name}, split {data.digest()}, float {exact:.4f}\n")
        print("| method | " + " | ".join(f"{n} bytes" for n in options.bytes) + " |")
        print("|---|" + "---|" * len(options.bytes), flush=True)
        for name in options.methods:
            row = [measure_cell(data, set_name, name, n, options, cells) for n in options.bytes]
            print(f"| {name} | {' | '.join(row)} |", flush=True)


def store(path: Path, key: str, value: float) -> dict[str, float]:
    """Add a cell to the file, which other runs may have changed since; returns all of them."""
    cells = json.loads(path.read_text()) if path.exists() else {}
    cells[key] = value
    path.write_text(json.dumps(cells, indent=1))
    return cells


def measure_cell(
    data: Collection,
    set_name: str,
    name: str,
    n_bytes: int,
    options: argparse.Namespace,
    cells: dict,
) -> str:
    """Mean and standard deviation over the seeds; what was measured before is read from `cells`."""
    if (name, n_bytes) in LEFT_OUT:
        return "–"
    values = []
    for seed in range(1 if name in UNSEEDED else options.seeds):
        key = f"{set_name} {data.digest()} {name} {n_bytes} {seed}"
        if key not in cells:
            value = data.measure(METHODS[name](data, n_bytes, seed))
            cells = cells | store(options.out, key, value)
        values.append(cells[key])
    spread = f" ± {np.std(values):.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{spread}"


if __name__ == "__main__":
    main()
