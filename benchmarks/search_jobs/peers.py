"""Indexes to compare: each is built once and then answers `search(queries, k)` with distances.

Whatever is not installed is left out. All of them run on one thread unless told otherwise.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from rankbits.index import HammingIndex

Search = Callable[[np.ndarray, int], np.ndarray]  # packed queries, k -> distances (queries, k)
N_LISTS = 1024


@dataclass
class Peer:
    name: str
    search: Search
    n_bytes: int = 0
    build_seconds: float = 0.0
    index: object = field(default=None, repr=False)  # what `search` asks; None where there is none


@dataclass
class Sweep:
    """One index and the settings that trade recall for speed."""

    peer: Peer
    settings: dict[str, Callable[[], None]]  # what to say, and what sets it


def search_call(peer: Peer, queries: np.ndarray, k: int) -> tuple[Callable[[], object], int]:
    """The call that `in_turns` measures, and its number of queries."""
    return lambda: peer.search(queries, k), len(queries)


def build_in_time(build: Callable[[], object]) -> tuple[object, float]:
    """What `build` returns, and the seconds it took."""
    start = time.perf_counter()
    index = build()
    return index, time.perf_counter() - start


def import_packages() -> dict[str, object]:
    """faiss and usearch, as far as they are installed; faiss on one thread."""
    packages: dict[str, object] = {}
    try:
        import faiss

        faiss.omp_set_num_threads(1)
        packages["faiss"] = faiss
    except ImportError:
        print("faiss is not installed: left out")
    try:
        import usearch.index

        packages["usearch"] = usearch.index
    except ImportError:
        print("usearch is not installed: left out")
    return packages


def rankbits_peer(codes: np.ndarray, kind: str, k: int = 10, n_threads: int = 1, **more) -> Peer:
    """An index of ours, with whatever its kind builds at the first search."""

    def build() -> HammingIndex:
        index = HammingIndex(8 * codes.shape[1], kind, n_threads=n_threads, **more)
        index.add(codes)
        if kind != "auto":  # which chooses later
            index.search(codes[:1], k)
        return index

    index, seconds = build_in_time(build)
    name = f"rankbits {kind}" + (f", {n_threads} threads" if n_threads > 1 else "")
    name += "".join(f", {option}={value}" for option, value in more.items())
    n_bytes = index.n_bytes
    return Peer(name, lambda queries, k: index.search(queries, k)[0], n_bytes, seconds, index)


def numpy_peer(codes: np.ndarray) -> Peer:
    """xor, bitwise_count and argpartition, one query after the other."""
    words = codes.view(np.uint64 if codes.shape[1] % 8 == 0 else np.uint32)

    def search(queries: np.ndarray, k: int) -> np.ndarray:
        rows = []
        for query in np.ascontiguousarray(queries).view(words.dtype):
            distances = np.bitwise_count(words ^ query).sum(axis=1, dtype=np.int32)
            k_near = min(k, len(distances))
            nearest = np.argpartition(distances, k_near - 1)[:k_near]
            rows.append(np.sort(distances[nearest]))
        return np.array(rows)

    return Peer("NumPy", search, codes.nbytes)


def faiss_flat(faiss, codes: np.ndarray, n_threads: int = 1) -> Peer:
    def build():
        index = faiss.IndexBinaryFlat(8 * codes.shape[1])
        index.add(codes)
        return index

    peer = _faiss_peer(faiss, "faiss flat", build)
    if n_threads == 1:
        return peer
    on_one = peer.search

    def search(queries: np.ndarray, k: int) -> np.ndarray:
        faiss.omp_set_num_threads(n_threads)
        try:
            return on_one(queries, k)
        finally:
            faiss.omp_set_num_threads(1)

    peer.name, peer.search = f"faiss flat, {n_threads} threads", search
    return peer


def _faiss_peer(faiss, name: str, build: Callable[[], object]) -> Peer:
    index, seconds = build_in_time(build)
    n_bytes = faiss.serialize_index_binary(index).nbytes  # it does not tell its memory
    return Peer(name, lambda queries, k: index.search(queries, k)[0], n_bytes, seconds, index)


def usearch_exact(usearch, codes: np.ndarray) -> Peer:
    def search(queries: np.ndarray, k: int) -> np.ndarray:
        metric = usearch.MetricKind.Hamming
        options = {"exact": True, "threads": 1, "dtype": "b1"}
        return usearch.search(codes, queries, k, metric, **options).distances.reshape(-1, k)

    return Peer("usearch exact", search, codes.nbytes)


def setting(owner: object, attribute: str, value: int) -> Callable[[], None]:
    return lambda: setattr(owner, attribute, value)


def faiss_sweeps(faiss, codes: np.ndarray, with_graphs: bool) -> Iterator[Sweep]:
    n_bits = 8 * codes.shape[1]

    def lists():
        quantizer = faiss.IndexBinaryFlat(n_bits)
        n_lists = max(1, min(N_LISTS, len(codes) // 40))
        index = faiss.IndexBinaryIVF(quantizer, n_bits, n_lists)
        index.own_fields = True
        quantizer.this.disown()
        index.train(codes)
        index.add(codes)
        return index

    def hashes():
        index = faiss.IndexBinaryMultiHash(n_bits, max(1, n_bits // 16), 16)
        index.add(codes)
        return index

    def graph():
        index = faiss.IndexBinaryHNSW(n_bits, 16)
        index.add(codes)
        return index

    ivf = _faiss_peer(faiss, "faiss IVF", lists)
    probes = {f"nprobe {n}": setting(ivf.index, "nprobe", n) for n in (1, 2, 4, 8, 16, 32, 64)}
    yield Sweep(ivf, probes)
    multi = _faiss_peer(faiss, "faiss MultiHash", hashes)
    yield Sweep(multi, {f"nflip {n}": setting(multi.index, "nflip", n) for n in (0, 1, 2)})
    if with_graphs:
        hnsw = _faiss_peer(faiss, "faiss HNSW16", graph)
        owner = hnsw.index.hnsw
        sizes = (16, 32, 64, 128, 256, 512)
        yield Sweep(hnsw, {f"efSearch {n}": setting(owner, "efSearch", n) for n in sizes})


def usearch_sweep(usearch, codes: np.ndarray) -> Sweep:
    def build():
        index = usearch.Index(
            ndim=8 * codes.shape[1], metric=usearch.MetricKind.Hamming, dtype="b1"
        )
        index.add(np.arange(len(codes)), codes, threads=1)
        return index

    index, seconds = build_in_time(build)

    def search(queries: np.ndarray, k: int) -> np.ndarray:
        return index.search(queries, k, threads=1).distances.reshape(-1, k)

    peer = Peer("usearch index", search, index.memory_usage, seconds, index)
    sizes = (16, 32, 64, 128, 256, 512)
    return Sweep(peer, {f"expansion {n}": setting(index, "expansion_search", n) for n in sizes})


def rankbits_sweep(codes: np.ndarray) -> Sweep:
    peer = rankbits_peer(codes, "ivf")
    probes = {
        f"n_probes {n}": lambda n=n: peer.index.configure(n_probes=n)
        for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
    }
    return Sweep(peer, probes)
