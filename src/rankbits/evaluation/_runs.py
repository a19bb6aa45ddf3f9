"""Lists of results in files: TREC runs with names for queries and items, or arrays of row numbers.

    TREC   query, Q0, item, rank, score, tag; apart by spaces or tabs; the last may be missing
    array  .npy with ids (queries, k), or .npz with `ids` and perhaps `scores` or `distances`

A TREC run is in order of score, largest first, whatever its ranks and lines say, as trec_eval reads
it; equal scores are ties.
"""

import math
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rankbits.datasets import load_array
from rankbits.errors import FileFormatError, InputError
from rankbits.evaluation._reference import NO_ITEM

_ARRAY_ENDINGS = (".npy", ".npz", ".parquet", ".safetensors")
_SCORE_KEYS = ("scores", "distances")


class Results(NamedTuple):
    """Lists of results, for `evaluate_rankings`.

    Attributes
    ----------
    ids : ndarray of int64, shape (queries, k)
        Row numbers of items, best first; -1 where there is none.
    scores : ndarray of float64, shape (queries, k), or None
        What the lists are sorted by.
    n_unknown_queries : int
        Queries of a run that are not among the given ids, and were left out.
    """

    ids: np.ndarray
    scores: np.ndarray | None
    n_unknown_queries: int = 0


class RunLine(NamedTuple):
    """One line of a TREC run.

    Attributes
    ----------
    line : int
        Number of the line in the file, from 1.
    query : str
        Id of the query.
    item : str
        Id of the item.
    score : float
        Its score; larger is better.
    """

    line: int
    query: str
    item: str
    score: float


def is_run_file(path: str) -> bool:
    """Whether a file is to be read as a TREC run: it has no ending of a file of arrays.

    Parameters
    ----------
    path : str
        Path of the file, perhaps with a key behind it, as in FILE:KEY.
    """
    return not any(path.endswith(end) or f"{end}:" in path for end in _ARRAY_ENDINGS)


def run_lines(path: str | os.PathLike[str]) -> Iterator[RunLine]:
    """The lines of a TREC run, in order; any other line is an error.

    Parameters
    ----------
    path : str or path-like
        A UTF-8 text file with one result per line. Empty lines are skipped.
    """
    file = os.fspath(path)
    if not os.path.isfile(file):
        raise InputError(f"path must name a file, there is no {file}")
    with open(file, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                columns = line.decode("utf-8-sig").split()
            except UnicodeDecodeError:
                raise FileFormatError(f"{file}, line {number} must be UTF-8 text") from None
            if columns:
                yield _run_line(columns, file, number)


def read_run(path: str | os.PathLike[str], query_ids: Any, item_ids: Any) -> Results:
    """Read a TREC run for queries and items in the order of their ids.

    Parameters
    ----------
    path : str or path-like
        The run. A query without any line has an empty list.
    query_ids, item_ids : sequence of str
        The id of each query and of each item, in the order in which the affinity has them. Lines
        of other queries are left out and counted; an unknown item is an error.
    """
    rows = {str(name): row for row, name in enumerate(query_ids)}
    items = {str(name): row for row, name in enumerate(item_ids)}
    lists: list[dict[int, float]] = [{} for _ in rows]
    unknown: set[str] = set()
    for line in run_lines(path):
        row, item = rows.get(line.query), items.get(line.item)
        if row is None:
            unknown.add(line.query)
            continue
        place = f"{os.fspath(path)}, line {line.line}"
        if item is None:
            raise InputError(f"{place} has item {line.item!r}, which is not among the item ids")
        if item in lists[row]:
            raise FileFormatError(f"{place} has item {line.item!r} of {line.query!r} twice")
        lists[row][item] = line.score
    if not any(lists):
        raise InputError(f"{os.fspath(path)} must have results of some of the queries, it has none")
    return _stacked(lists, len(unknown))


def load_results(path: str | os.PathLike[str]) -> Results:
    """Load lists of row numbers from a file of arrays.

    Parameters
    ----------
    path : str or path-like
        A .npz with `ids` and perhaps `scores` or `distances`, as `rankbits index search --out`
        writes it, or any file that holds one array of ids; FILE:KEY names one of several.
    """
    file = os.fspath(path)
    if not file.endswith(".npz"):
        return Results(np.asarray(load_array(file)), None)
    ids = np.asarray(load_array(file, "ids"))
    with np.load(file, allow_pickle=False) as stored:
        key = next((name for name in _SCORE_KEYS if name in stored.files), None)
    scores = None if key is None else np.asarray(load_array(file, key))
    return Results(ids, scores)


def _run_line(columns: list[str], file: str, number: int) -> RunLine:
    try:
        score = float(columns[4]) if len(columns) in (5, 6) else math.nan
    except ValueError:
        score = math.nan
    if math.isnan(score):
        raise FileFormatError(
            f"{file}, line {number} must be query, Q0, item, rank, score and tag, the score a "
            f"number; got {columns[:7]!r:.80}"
        )
    return RunLine(number, columns[0], columns[2], score)


def _stacked(lists: list[dict[int, float]], n_unknown_queries: int) -> Results:
    width = max(len(results) for results in lists)
    ids, scores = np.full((len(lists), width), NO_ITEM), np.full((len(lists), width), np.nan)
    for row, results in enumerate(lists):
        ranked = sorted(results.items(), key=lambda result: -result[1])
        ids[row, : len(ranked)] = [item for item, _ in ranked]
        scores[row, : len(ranked)] = [score for _, score in ranked]
    return Results(ids, scores, n_unknown_queries)
