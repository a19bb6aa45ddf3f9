"""Labels and judgements from files."""

import os

import numpy as np

from rankbits import _check
from rankbits.datasets._arrays import load_array, split_key
from rankbits.errors import FileFormatError, InputError

_TEXT = (".tsv", ".txt", ".qrels")


def load_labels(path: str | os.PathLike[str], key: str | None = None) -> np.ndarray:
    """Load labels, see `load_array` for path and key.

    Classes are a 1-D array of integers or strings; tags are a 2-D array of 0 and 1 with one
    column per tag.
    """
    labels = load_array(path, key)
    kinds = {1: "biuUS", 2: "biuf"}.get(labels.ndim, "")
    if labels.dtype.kind not in kinds or 0 in labels.shape:
        raise InputError(
            f"{path} must hold classes, integers or strings of shape (n,), or multi-hot tags of "
            f"shape (n, tags), with n > 0; got {_check.describe(np.asarray(labels))}"
        )
    return labels


def load_judgements(path: str | os.PathLike[str], key: str | None = None) -> np.ndarray:
    """Load (query, item, level) rows as int64 of shape (n, 3), for `rankbits.affinity.judgements`.

    Queries and items are row numbers from 0. A text file (.tsv, .txt, .qrels) has one judged pair a
    line, columns apart by spaces or tabs: query, item, level, or query, iteration, item, level as
    in a qrels file. Any other file holds an integer array of shape (n, 3).
    """
    file, key = split_key(path, key)
    if os.path.splitext(file)[1] in _TEXT:
        return _judgements_of_text(file)
    rows = load_array(file, key)
    if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu":
        raise InputError(
            f"{path} must hold integers of shape (n, 3): query, item, level; "
            f"got {_check.describe(np.asarray(rows))}"
        )
    return np.asarray(rows).astype(np.int64)


def _judgements_of_text(file: str) -> np.ndarray:
    """Rows of a text file; the first line that is not one is named."""
    if not os.path.isfile(file):
        raise InputError(f"path must name a file, there is no {file}")
    rows = []
    with open(file, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            fields = line.split()
            if fields:
                rows.append(_judgement(fields, f"{file}, line {number}"))
    return np.array(rows, np.int64).reshape(-1, 3)


def _judgement(fields: list[bytes], where: str) -> tuple[int, int, int]:
    """One judged pair; the second of four columns is the iteration that nobody uses."""
    kept = fields[:1] + fields[2:] if len(fields) == 4 else fields
    digits = [field.removeprefix(b"-") for field in kept]
    if len(kept) != 3 or not all(field.isdigit() and len(field) < 19 for field in digits):
        raise FileFormatError(
            f"{where} must be query, item, level in whole numbers, got {fields[:5]!r:.80}"
        )
    query, item, level = map(int, kept)
    return query, item, level
