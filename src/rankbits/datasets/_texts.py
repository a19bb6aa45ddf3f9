"""Vectors of texts from one .npz file: requests with intents, or documents with judged queries.

Two layouts are read:
    x, y, split, domain            requests: the intent of each, its part (0 training, 1 validation,
                                   2 test), and the domain of each intent; optionally names
    documents, queries, qrels      a test collection: vectors of both sides, and rows of (query,
                                   document, level)
"""

import os
from collections.abc import Mapping

import numpy as np

from rankbits import _check
from rankbits.datasets._features import (
    Labelled,
    class_numbers,
    existing_file,
    feature_rows,
    names_of,
    read_arrays,
    require_keys,
    require_same_rows,
    without_labels,
)
from rankbits.errors import FileFormatError

Path = str | os.PathLike[str]
_REQUESTS = ("x", "y", "split", "domain")
_COLLECTION = ("documents", "queries", "qrels")
_TEST = 2  # in `split`


def load_requests(path: Path) -> Labelled:
    """Vectors of requests, their intents as classes, and domains as superclasses (CLINC150).

    Training and validation requests come first, then those of the test part. Larson et al., "An
    evaluation dataset for intent classification and out-of-scope prediction", EMNLP 2019.

    Parameters
    ----------
    path : str or path-like
        The .npz file with the arrays x, y, split and domain, and optionally names of the intents.
    """
    file = existing_file(path)
    arrays = read_arrays(file, (*_REQUESTS, "names"))
    require_keys(file, arrays, _REQUESTS)
    x, y = feature_rows(file, arrays, "x"), class_numbers(file, arrays, "y")
    part, domain = (class_numbers(file, arrays, key) for key in ("split", "domain"))
    require_same_rows(file, "x", len(x), "y", len(y))
    require_same_rows(file, "x", len(x), "split", len(part))
    if part.max(initial=0) > _TEST:
        raise FileFormatError(f"{file} must have 0, 1 or 2 in split, got {part.max()}")
    names = names_of(file, arrays, "names")
    if y.max(initial=0) >= len(domain) or (names and len(names) != len(domain)):
        raise FileFormatError(
            f"{file} must have a domain and a name for each intent, it has {len(domain)} domains "
            f"and {len(names)} names, and the intent {y.max(initial=0)}"
        )
    order = np.argsort(part == _TEST, kind="stable")
    return Labelled(x[order], y[order], part[order] == _TEST, names, domain)


def load_collection(path: Path) -> Labelled:
    """Vectors of documents, then those of the queries, which are the test part, and judgements.

    Parameters
    ----------
    path : str or path-like
        The .npz file with the arrays documents, queries and qrels: rows of a query's number, a
        document's number, both from 0, and a level above 0.
    """
    file = existing_file(path)
    arrays = read_arrays(file, _COLLECTION)
    require_keys(file, arrays, _COLLECTION)
    documents, queries = (feature_rows(file, arrays, key) for key in ("documents", "queries"))
    if documents.shape[1] != queries.shape[1]:
        raise FileFormatError(
            f"{file} must have vectors of one length, documents have {documents.shape[1]} numbers "
            f"and queries {queries.shape[1]}"
        )
    judged = _judged_pairs(file, arrays, len(queries), len(documents))
    judged[:, 0] += len(documents)  # queries are numbered after the documents
    x = np.concatenate([documents, queries])
    is_test = np.arange(len(x)) >= len(documents)
    return Labelled(x, without_labels(len(x)), is_test, judgements=judged)


def _judged_pairs(
    file: str, arrays: Mapping[str, np.ndarray], n_queries: int, n_documents: int
) -> np.ndarray:
    rows = arrays["qrels"]
    if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu":
        raise FileFormatError(
            f"{file} must have qrels as integers of shape (n, 3), got {_check.describe(rows)}"
        )
    judged = rows.astype(np.int64)
    limits = np.array([n_queries, n_documents, np.iinfo(np.int32).max])
    is_bad = ((judged < [0, 0, 1]) | (judged >= limits)).any(axis=1)
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise FileFormatError(
            f"{file} must have qrels of {n_queries} queries and {n_documents} documents with "
            f"levels from 1, row {row} is {judged[row].tolist()}"
        )
    return judged
