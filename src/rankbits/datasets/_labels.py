"""Labels and judgements from files."""

import os
import re

import numpy as np

from rankbits import _check
from rankbits.affinity import JudgedPair, qrels_pairs
from rankbits.datasets._arrays import load_array, split_key
from rankbits.errors import FileFormatError, InputError

_TEXT = (".tsv", ".txt", ".qrels")
_ROW_NUMBER = re.compile(r"-?[0-9]{1,18}")


def load_labels(path: str | os.PathLike[str], key: str | None = None) -> np.ndarray:
    """Load the labels of queries or items: classes or tags.

    Classes are a 1-D array of integers or strings; tags are a 2-D array of 0 and 1 with one
    column per tag.

    Parameters
    ----------
    path : str or path-like
        The file, which ends in .npy, .npz, .parquet or .safetensors. FILE:KEY is the file FILE
        with the key KEY.
    key : str or None, default=None
        Name of the array, or of the column of a .parquet, where the file holds several; see
        `load_array`.

    Returns
    -------
    ndarray of shape (n,) or (n, tags)
        The labels with the dtype of the file. Those of a .npy are memory-mapped.
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

    Queries and items are row numbers from 0; for a qrels file with other ids see
    `rankbits.affinity.read_judgements`. A text file (.tsv, .txt, .qrels) has one judged pair per
    line: query, item, level, or query, iteration, item, level; a negative level is 0. Any other
    file holds an integer array of shape (n, 3).

    Parameters
    ----------
    path : str or path-like
        The file, which ends in .tsv, .txt, .qrels, .npy, .npz, .parquet or .safetensors. FILE:KEY
        is the file FILE with the key KEY.
    key : str or None, default=None
        Name of the array, or of the column of a .parquet, where the file holds several; see
        `load_array`. It is not used for text files.
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
    """Rows of a text file whose ids are row numbers."""
    rows = [_row(pair, file) for pair in qrels_pairs(file)]
    return np.array(rows, np.int64).reshape(-1, 3)


def _row(pair: JudgedPair, file: str) -> tuple[int, int, int]:
    """A judged pair as numbers; a negative grade is level 0, as in every qrels file."""
    if not all(_ROW_NUMBER.fullmatch(text) for text in (pair.query, pair.item)):
        raise FileFormatError(
            f"{file}, line {pair.line} must name query and item by their row numbers, got "
            f"{pair.query!r:.40} and {pair.item!r:.40}; to use other ids, give --query-ids and "
            "--database-ids, or call affinity.read_judgements(path, query_ids, database_ids)"
        )
    return int(pair.query), int(pair.item), max(pair.grade, 0)
