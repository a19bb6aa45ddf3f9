"""Ids of queries or items out of files: the names that a qrels file uses for them."""

import json
import os

import numpy as np

from rankbits import _check
from rankbits.datasets._arrays import load_array, split_key
from rankbits.errors import FileFormatError, InputError

_JSON_KEYS = ("_id", "id")


def load_ids(path: str | os.PathLike[str], key: str | None = None) -> np.ndarray:
    """Load ids as a 1-D array of strings or integers, for `rankbits.affinity.read_judgements`.

    Strings of text files are objects of Python, so that one long id costs no more than its length.

    A .txt file has one id per line; a .jsonl file has one object per line with the key `_id` (as in
    BEIR's queries.jsonl and corpus.jsonl) or `id`. Any other file holds a 1-D array or, in
    .parquet, a column.

    Parameters
    ----------
    path : str or path-like
        The file, which ends in .txt, .jsonl, .npy, .npz, .parquet or .safetensors. FILE:KEY is
        the file FILE with the key KEY.
    key : str or None, default=None
        Name of the array, or of the column of a .parquet, where the file holds several; see
        `load_array`. It is not used for .txt and .jsonl.
    """
    file, key = split_key(path, key)
    ending = os.path.splitext(file)[1]
    if ending in (".txt", ".jsonl"):
        lines = _lines(file)
        read = _id_of_object if ending == ".jsonl" else _id_of_line
        texts = [read(line, f"{file}, line {i}") for i, line in enumerate(lines, start=1)]
        return np.array(texts, object)  # an array of texts gives each the bytes of the longest
    ids = load_array(file, key)
    if ids.ndim != 1 or ids.dtype.kind not in "iuU" or len(ids) == 0:
        raise InputError(
            f"{path} must hold ids, strings or integers of shape (n,), with n > 0; "
            f"got {_check.describe(np.asarray(ids))}"
        )
    return np.asarray(ids)


def _lines(file: str) -> list[str]:
    if not os.path.isfile(file):
        raise InputError(f"path must name a file, there is no {file}")
    try:
        with open(file, encoding="utf-8-sig", newline="\n") as text:
            lines = text.read().rstrip("\r\n").split("\n")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{file} must be UTF-8 text: {error.reason}") from None
    if lines == [""]:
        raise FileFormatError(f"{file} must have one id per line, it has none")
    return lines


def _id_of_line(line: str, place: str) -> str:
    text = line.strip()
    if not text:
        raise FileFormatError(f"{place} must be an id, got an empty line")
    return text


def _id_of_object(line: str, place: str) -> str:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        fields = None
    if isinstance(fields, dict):
        for key in _JSON_KEYS:
            if type(fields.get(key)) in (str, int):
                return str(fields[key])
    raise FileFormatError(
        f"{place} must be a JSON object with a string or an integer under "
        f"{' or '.join(map(repr, _JSON_KEYS))}, got {line!r:.80}"
    )
