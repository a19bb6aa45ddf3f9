"""Figures of real-valued queries: quality against bytes an item, and against time a query.

Quality is read from the cells that benchmarks/real_queries.py wrote. Times are measured here, kept
in a file of their own and not measured again if they are there, so that the figures are a function
of two result files.

What is timed is a search of a million items for the best 100, one thread, contenders in turns, the
best of several rounds. A set of 11,000 items would lie in the caches and measure what a call costs;
at a million the scan of the codes counts, as it does where bytes matter. The time of a scan depends
on the number of bytes and of features and hardly on what the bytes say, so codes, codebooks and
queries are random, and everybody answers the same queries. It includes all that turns the features
of a query into a ranking: the linear map of our methods, the rotation of OPQ, the projection of
RaBitQ, the tables of PQ and RQ.

    python benchmarks/query_figures.py CELLS [--times times.json] [--out docs/figures]
                                       [--items 1_000_000] [--rounds 5] [--clock cpu]
"""

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy and faiss read them

import numpy as np
from search_jobs.peers import import_packages
from search_jobs.timing import CLOCKS, in_turns, set_clock

from rankbits import methods, report
from rankbits.index import HammingIndex

TITLES = {
    "npl": "NPL, nDCG@10",
    "clinc": "CLINC150, AP by intent",
    "cifar": "CIFAR features, top 10 in 100",
}
N_FEATURES = {"npl": 384, "clinc": 384, "cifar": 256}
QUANTIZERS = ("PQ", "OPQ", "RQ", "RaBitQ")  # of faiss; all other methods are bits of ours
HAMMING = "-hamming"  # how the names of methods end whose queries are bits
K, N_QUERIES, TRAINING_ROWS = 100, 32, 2000
Cells = dict[str, dict[str, dict[int, list[float]]]]  # values by set, method and bytes
Search = Callable[[], object]


def read_cells(path: Path) -> tuple[Cells, dict[str, float]]:
    """Values of all seeds, and the quality of float vectors by set; of one split for each set."""
    cells: Cells = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    references, digests = {}, {}
    for key, value in json.loads(path.read_text()).items():
        set_name, digest, method, n_bytes, _ = key.split()
        if digests.setdefault(set_name, digest) != digest:
            raise SystemExit(
                f"{path} must have one split of each set, {set_name} has {digests[set_name]} and "
                f"{digest}; keep the cells of one"
            )
        if method == "float":
            references[set_name] = value
        else:
            cells[set_name][method][int(n_bytes)].append(value)
    return cells, references


def contender_of(method: str) -> str:
    """What is timed for a method: its own index of faiss, or one of our two scans."""
    if method in QUANTIZERS:
        return method
    return "Hamming scan" if method.endswith(HAMMING) else "search_real"


def time_key(set_name: str, method: str, n_bytes: int, n_items: int) -> str:
    """The key of a time in the result file."""
    return f"{contender_of(method)}, {N_FEATURES[set_name]} features, {n_bytes} bytes, {n_items}"


def bits_call(queries: np.ndarray, n_bytes: int, n_items: int, *, is_real: bool) -> Search:
    """A linear map of the queries, and one of our scans."""
    rng = np.random.default_rng(0)
    hasher = methods.get("lsh", n_bits=8 * n_bytes, random_state=0)
    hasher.fit(rng.standard_normal((TRAINING_ROWS, queries.shape[1]), np.float32))
    index = HammingIndex(8 * n_bytes, "scan", n_threads=1)
    index.add(rng.integers(0, 256, (n_items, n_bytes), np.uint8))
    if is_real:
        return lambda: index.search_real(hasher.project_queries(queries), K)
    return lambda: index.search(hasher.encode_queries(queries), K)


def quantizer_call(faiss, name: str, queries: np.ndarray, n_bytes: int, n_items: int) -> Search:
    """A search of random codes by PQ, OPQ or RQ with random codebooks, by inner product.

    RQ searches by tables of inner products, which is the fastest way that faiss has for it.
    """
    rng, n_features = np.random.default_rng(0), queries.shape[1]
    if name == "RQ":
        by_tables = faiss.AdditiveQuantizer.ST_LUT_nonorm
        inner = faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexResidualQuantizer(n_features, n_bytes, 8, inner, by_tables)
        fill(faiss, index.rq.codebooks, rng, n_bytes * 256 * n_features)
        index.rq.is_trained = True
    else:
        index = faiss.IndexPQ(n_features, n_bytes, 8, faiss.METRIC_INNER_PRODUCT)
        fill(faiss, index.pq.centroids, rng, 256 * n_features)
    index.is_trained = True
    codes = rng.integers(0, 256, n_items * n_bytes, np.uint8)
    faiss.copy_array_to_vector(codes, index.codes)
    index.ntotal = n_items
    if name == "OPQ":
        rotation = faiss.OPQMatrix(n_features, n_bytes)
        turn = np.linalg.qr(rng.standard_normal((n_features, n_features)))[0]
        faiss.copy_array_to_vector(turn.astype(np.float32).ravel(), rotation.A)
        rotation.is_trained = True
        whole = faiss.IndexPreTransform(rotation, index)
        return lambda parts=(rotation, index): whole.search(queries, K)
    return lambda: index.search(queries, K)


def fill(faiss, vector: object, rng: np.random.Generator, n: int) -> None:
    faiss.copy_array_to_vector(rng.standard_normal(n, np.float32), vector)


def rabitq_call(faiss, queries: np.ndarray, n_bytes: int, n_items: int) -> Search:
    """RaBitQ as real_queries.py has it: 8 bytes of factors, the others a bit for a direction."""
    rng, n_directions = np.random.default_rng(0), 8 * (n_bytes - 8)
    basis = np.linalg.qr(rng.standard_normal((queries.shape[1], n_directions)))[0]
    basis = basis.astype(np.float32)
    index = faiss.IndexRaBitQ(n_directions, faiss.METRIC_INNER_PRODUCT)
    rows = rng.standard_normal((n_items, n_directions), np.float32)
    index.train(rows[:TRAINING_ROWS])
    index.add(rows)
    return lambda: index.search(queries @ basis, K)


def measure_times(cells: Cells, times: dict[str, float], options: argparse.Namespace) -> None:
    """Add the microseconds a query that are missing.

    Contenders with as many features and bytes take turns, so all of them are measured again where
    one is missing.
    """
    groups = defaultdict(dict)
    for set_name, lines in cells.items():
        for method, values in lines.items():
            for n_bytes in values:
                key = time_key(set_name, method, n_bytes, options.items)
                groups[N_FEATURES[set_name], n_bytes][key] = contender_of(method)
    groups = {place: group for place, group in groups.items() if not group.keys() <= times.keys()}
    faiss = import_packages().get("faiss") if groups else None
    for (n_features, n_bytes), contenders in sorted(groups.items()):
        rng = np.random.default_rng(1)
        queries = rng.standard_normal((N_QUERIES, n_features), np.float32)
        calls = {
            key: (build_call(faiss, name, queries, n_bytes, options.items), N_QUERIES)
            for key, name in contenders.items()
        }
        for key, timing in in_turns(calls, options.rounds).items():
            times[key] = round(1e6 * timing.best, 2)
            print(f"{key}: {times[key]:,.1f} µs a query", flush=True)
        options.times.write_text(json.dumps(times, indent=1))


def build_call(faiss, name: str, queries: np.ndarray, n_bytes: int, n_items: int) -> Search:
    if name in ("search_real", "Hamming scan"):
        return bits_call(queries, n_bytes, n_items, is_real=name == "search_real")
    if faiss is None:
        raise SystemExit(f"faiss must be installed to time {name}")
    if name == "RaBitQ":
        return rabitq_call(faiss, queries, n_bytes, n_items)
    return quantizer_call(faiss, name, queries, n_bytes, n_items)


def panels_of(
    cells: Cells, cost: Callable[[str, str, int], float]
) -> dict[str, dict[str, list[tuple[float, float, float]]]]:
    """Points (cost, mean, standard deviation) of each method in each set."""
    return {
        TITLES[set_name]: {
            label_of(method): [
                (cost(set_name, method, n_bytes), float(np.mean(values)), float(np.std(values)))
                for n_bytes, values in sorted(cells[set_name][method].items())
            ]
            for method in sorted(cells[set_name], key=order_of)
        }
        for set_name in TITLES
        if set_name in cells
    }


def order_of(method: str) -> tuple[bool, bool, str]:
    """Ours first, then ours by Hamming distance, then faiss."""
    return method in QUANTIZERS, method.endswith(HAMMING), method


def label_of(method: str) -> str:
    if method in QUANTIZERS:
        return f"{method} of faiss"
    return method.replace(HAMMING, ", Hamming")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", type=Path)
    parser.add_argument("--times", type=Path, default=Path("query_times.json"))
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: on a shared machine")
    options = parser.parse_args()
    set_clock(options.clock)
    cells, float_quality = read_cells(options.cells)
    times = json.loads(options.times.read_text()) if options.times.exists() else {}
    measure_times(cells, times, options)
    style = {
        "dashed": [label_of(name) for name in QUANTIZERS],
        "references": {TITLES[name]: value for name, value in float_quality.items()},
    }
    by_bytes = panels_of(cells, lambda set_name, method, n_bytes: n_bytes)
    by_time = panels_of(
        cells,
        lambda set_name, method, n_bytes: times[time_key(set_name, method, n_bytes, options.items)],
    )
    n_bytes = sorted({n for lines in cells.values() for line in lines.values() for n in line})
    time_label = (
        f"µs a query at {options.items:,} items, one thread; points of a line: "
        f"{', '.join(map(str, n_bytes))} bytes"
    )
    for name, panels, cost in (
        ("quality_by_bytes", by_bytes, "bytes an item"),
        ("quality_by_time", by_time, time_label),
    ):
        svg = report.quality_plot(panels, cost, name=name.replace("_", "-"), **style)
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / f"{name}.svg").write_text(svg + "\n")


if __name__ == "__main__":
    main()
