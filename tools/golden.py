"""Golden results: what must be the same, to the bit, before and after a large refactoring.

    python tools/golden.py before.json          # at the commit to compare with
    python tools/golden.py after.json
    python tools/golden.py --compare before.json after.json

Codes and weights of every method on small sets, files of models, scores of all metrics, answers of
searches, and the numbers of a compression. Each entry is a digest, or a number that a person can
read. Both runs must be made on the same machine with the same packages.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rankbits
from rankbits import affinity, evaluate, methods
from rankbits.codes import BinaryCodes
from rankbits.compress import compress
from rankbits.evaluation import audit, evaluate_rankings, evaluate_vectors
from rankbits.index import (
    Collection,
    HammingIndex,
    Matches,
    TablesIndex,
    asymmetric,
    vectors,
    weighted_bits,
)
from rankbits.methods import registry
from rankbits.metrics import registered

Entry = tuple[str, Any]
SLOW = {"fasthash": {"n_trees": 3}, "structhash": {"n_trees": 3}}
METRICS = [metric.name for metric in registered() if metric.name not in ("overlap", "LGAP")]
METRICS += ["AP@20", "AP.worst", "AP.best", "nDCG@10", "P@10", "P@r3", "R@20", "RR", "ACG@10"]


def digest(value: Any) -> str:
    """A short hash of arrays, bytes and what JSON can say."""
    state = hashlib.sha256()
    value = tuple(value) if isinstance(value, Matches) else value
    for part in value if isinstance(value, tuple | list) else [value]:
        if isinstance(part, BinaryCodes):
            part = part.packed
        if isinstance(part, np.ndarray):
            state.update(f"{part.dtype.str} {part.shape}".encode())
            part = np.ascontiguousarray(part).tobytes()
        state.update(part if isinstance(part, bytes) else json.dumps(part).encode())
    return state.hexdigest()[:16]


def small_set(n: int = 240, n_features: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Rows of four classes that overlap, not centered."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, n)
    return 1.5 * rng.standard_normal((4, n_features))[y] + rng.standard_normal(
        (n, n_features)
    ) + 0.5, y


def method_entries(folder: Path) -> Iterator[Entry]:
    """Codes, weights and files of every method."""
    x, y = small_set()
    for name in methods.names():
        is_deep = registry.METHODS[name].needs_torch
        params = {"epochs": 3, "n_threads": 1} if is_deep else SLOW.get(name, {})
        hasher = methods.get(name, n_bits=16, **params)
        if "random_state" in hasher.get_params():
            hasher.set_params(random_state=0)
        hasher.fit(x[:200], y[:200])
        yield f"methods/{name}/codes", digest(hasher.encode(x))
        yield f"methods/{name}/weights", digest(np.asarray(hasher.project_queries(x)))
        if "bits" in hasher.query_kinds:
            yield f"methods/{name}/query codes", digest(hasher.encode_queries(x))
        hasher.save(folder / name)
        yield f"methods/{name}/arrays", digest((folder / name / "model.safetensors").read_bytes())
        yield f"methods/{name}/loaded", digest(rankbits.load(folder / name).encode(x))


def score_entries(folder: Path) -> Iterator[Entry]:
    """Means of all metrics by codes, by vectors, by rankings and by an audit."""
    x, y = small_set()
    codes = methods.get("lsh", n_bits=24, random_state=0).fit(x).encode(x)
    tags = np.eye(4, dtype=int)[y] | np.eye(4, dtype=int)[(y + x[:, 0].astype(int)) % 4]
    relevances = {
        "classes": affinity.classes(y[:40], y),
        "tags": affinity.tags(tags[:40], tags),
        "judgements": affinity.judgements([(i % 40, i, 1 + i % 3) for i in range(200)], 40, len(x)),
    }
    for kind, relevance in relevances.items():
        names = [name for name in METRICS if kind == "classes" or "worst" not in name]
        for name in names:
            try:
                scores = evaluate(codes[:40], codes, relevance, [name])
            except rankbits.errors.InputError:
                continue
            yield f"scores/{kind}/{name}", digest(np.asarray(scores.per_query[name]))
        scores = evaluate_vectors(x[:40], x, relevance, ["AP", "nDCG@10"])
        yield f"scores/{kind}/vectors", {name: float(v) for name, v in scores.mean.items()}
    nearest = np.argsort(((x[:40, None] - x) ** 2).sum(axis=2), axis=1, kind="stable")
    ranked = evaluate_rankings(nearest, relevances["classes"], ["AP", "nDCG@10"])
    yield "scores/classes/rankings", {name: float(v) for name, v in ranked.mean.items()}
    yield "scores/classes/audit", digest(audit(codes[:40], codes, relevances["classes"]).to_dict())


def search_entries(folder: Path) -> Iterator[Entry]:
    """Answers of every kind of index, in memory and on the disk."""
    rng = np.random.default_rng(7)
    packed = rng.integers(0, 256, (3000, 8), dtype=np.uint8)
    ids, rows = rng.permutation(9000)[:3000], rng.standard_normal((3000, 20)).astype(np.float32)
    queries, weights = packed[:30] ^ np.uint8(17), rng.standard_normal((30, 64))
    with Collection.create(folder / "collection", 64) as collection:
        collection.add(packed[:2000], ids[:2000])
        collection.seal()
        collection.add(packed[2000:], ids[2000:])
        collection.remove(ids[:50])
        index = HammingIndex(64)
        index.add(collection.codes(), collection.ids)
        for name, subject in (("index", index), ("collection", collection)):
            yield f"search/{name}/codes", digest([subject.codes(), subject.ids])
            for kind in ("scan", "mih"):
                subject.configure(kind)
                yield f"search/{name}/{kind}", digest(subject.search(queries, 20))
            yield f"search/{name}/ties", digest(subject.search(queries, 20, "complete"))
            yield f"search/{name}/within", digest(subject.within(queries, 22))
            yield f"search/{name}/tie counts", digest(subject.tie_counts(queries))
            yield f"search/{name}/real", digest(subject.search_real(weights, 20))
            allowed = subject.ids[::3]
            yield f"search/{name}/allowed", digest(subject.search(queries, 20, allowed=allowed))
            rescores = {
                "vectors": vectors(rows, rows[:30], "cosine", ids=ids),
                "asymmetric": asymmetric(weights),
                "weighted bits": weighted_bits(np.abs(weights)),
            }
            for rescore, value in rescores.items():
                answer = subject.search(queries, 20, rerank=value, pool=200)
                yield f"search/{name}/{rescore}", digest(answer)
    tables = TablesIndex(64, 2)
    tables.add([packed, packed[::-1].copy()])
    yield "search/tables/bits", digest(tables.search([queries, queries], 20))
    yield "search/tables/real", digest(tables.search_real([weights, weights], 20))


def compress_entries(folder: Path) -> Iterator[Entry]:
    """The recommendation of a compression, and all its candidates."""
    x, y = small_set(1200, 32)
    compressed = compress(
        x[100:],
        x[:100],
        out=folder / "compressed",
        n_bytes=(2, 4),
        query_labels=y[:100],
        item_labels=y[100:],
        methods=["itq", "additive", "distilled"],
        pools=(20, 50),
        onnx=False,
        random_state=0,
        n_threads=1,
    )
    result = compressed.result
    yield "compress/recommendation", result["recommendation"]["metrics"]
    yield (
        "compress/sentence",
        {key: result["recommendation"][key] for key in ("method", "bytes", "query", "pool")},
    )
    answer = compressed.search(x[:20], 10)
    yield "compress/search", digest([np.asarray(part) for part in answer])


SECTIONS: dict[str, Callable[[Path], Iterator[Entry]]] = {
    "methods": method_entries,
    "scores": score_entries,
    "search": search_entries,
    "compress": compress_entries,
}


def collect(sections: list[str]) -> dict[str, Any]:
    """All entries by name."""
    entries: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for section in sections:
            entries |= SECTIONS[section](Path(folder))
            sys.stderr.write(f"{section}: {len(entries)} entries\n")
    return entries


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Names of entries that are not the same in both."""
    return sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )


def main() -> int:
    """Write golden results, or compare two files of them; exit 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=list(SECTIONS))
    options = parser.parse_args()
    if not options.compare:
        text = json.dumps(collect(options.only), indent=1, sort_keys=True)
        options.files[0].write_text(text + "\n", encoding="utf-8")
        return 0
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in options.files)
    names = differences(before, after)
    print("\n".join(names) or f"{len(before)} entries are the same")
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
