"""Text retrieval with sparse graded judgements: codes of the Cranfield collection.

TF-IDF vectors of the 1,400 abstracts, reduced by a truncated SVD fitted on them, scaled to length
1. Two thirds of the 225 queries teach: their judgements, and nothing else, are the y of talr-ndcg.
The other queries rank all abstracts by codes; NDCG_T with gains 2^level - 1. The yardsticks see the
same rows without judgements.

    python benchmarks/cranfield.py cranfield.npz [--bits 16 32] [--seeds 3] [--json out.json]

The file holds `text` and `query` (strings) and `qrels`, rows of (query from 1, document from 1,
grade). Grades 1, the best, to 4 become levels 4 to 1; others are left out.
"""

import argparse
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy reads them

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from rankbits import affinity, evaluate, methods

YARDSTICKS = ("lsh", "pcah", "sign", "itq")
LEARNED = ("talr-ndcg",)
N_FEATURES = 256
TEST_SHARE = 1 / 3


@dataclass(frozen=True, eq=False)
class Collection:
    """Features of documents and queries, and levels[query, document]."""

    documents: np.ndarray
    queries: np.ndarray
    levels: np.ndarray


def load(path: Path) -> Collection:
    """Read the texts and turn them into features."""
    with np.load(path, allow_pickle=False) as stored:
        texts, questions, qrels = stored["text"], stored["query"], stored["qrels"].astype(np.int64)
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(texts)
    svd = TruncatedSVD(N_FEATURES, random_state=0).fit(words.transform(texts))
    documents, queries = (normalize(svd.transform(words.transform(x))) for x in (texts, questions))
    graded = qrels[(qrels[:, 2] >= 1) & (qrels[:, 2] <= 4)]
    levels = np.zeros((len(queries), len(documents)), np.int64)
    levels[graded[:, 0] - 1, graded[:, 1] - 1] = 5 - graded[:, 2]
    return Collection(documents, queries, levels)


def judged_rows(levels: np.ndarray) -> affinity.Affinity:
    """Judgements of training queries as an affinity over rows: documents first, then queries."""
    n_documents = levels.shape[1]
    query, document = np.nonzero(levels)
    triples = np.column_stack([query + n_documents, document, levels[query, document]])
    n = n_documents + len(levels)
    return affinity.judgements(triples, n, n)


def score(
    collection: Collection, method: str, n_bits: int, seed: int, params: dict[str, Any]
) -> tuple[float, float]:
    """NDCG_T of the held-out queries, and the seconds of the fit."""
    order = np.random.default_rng(seed).permutation(len(collection.queries))
    n_test = round(TEST_SHARE * len(order))
    test, train = order[:n_test], order[n_test:]
    relation = affinity.levels(collection.levels[test])
    rows = np.concatenate([collection.documents, collection.queries[train]]).astype(np.float32)
    hasher = methods.get(method, n_bits=n_bits, **(params if method in LEARNED else {}))
    if "random_state" in hasher.get_params():
        hasher.set_params(random_state=seed)
    started = time.perf_counter()
    hasher.fit(rows, judged_rows(collection.levels[train]) if method in LEARNED else None)
    seconds = time.perf_counter() - started
    codes = hasher.encode(collection.queries[test]), hasher.encode(collection.documents)
    return evaluate(*codes, relation, ["nDCG"]).mean["nDCG"], seconds


def main() -> None:
    """Print a table, a line a method and length: mean and spread over the seeds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--bits", type=int, nargs="+", default=[16, 32, 48, 64])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=[*YARDSTICKS, *LEARNED])
    parser.add_argument("--params", type=json.loads, default={}, help="JSON, of talr-ndcg")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    collection, table = load(options.data), []
    for n_bits in options.bits:
        for method in options.methods:
            runs = [
                score(collection, method, n_bits, s, options.params) for s in range(options.seeds)
            ]
            values, seconds = zip(*runs, strict=True)
            row = {"bits": n_bits, "method": method, "ndcg": values, "seconds": seconds}
            table.append(row)
            print(
                f"{n_bits:3} bits  {method:10} {np.mean(values):.4f} ± {np.std(values):.4f}  "
                f"{np.mean(seconds):6.1f} s",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
