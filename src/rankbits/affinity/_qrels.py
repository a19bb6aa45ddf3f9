"""Judgements of a qrels file, in which queries and items have names instead of row numbers.

    TREC   query, iteration, item, grade; apart by spaces or tabs; the iteration is not used
    BEIR   the header query-id, corpus-id, score; then query, item, score; apart by tabs

A line of three columns without a header is query, item, grade. Grades are whole numbers. A negative
grade marks an item that was judged and is useless, spam in some collections: it is level 0.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankbits import _check
from rankbits.affinity._judgements import Judgements, judgements
from rankbits.errors import FileFormatError, InputError

_HEADER = ["query-id", "corpus-id", "score"]
_GRADE = re.compile(r"[+-]?[0-9]{1,18}")


class JudgedPair(NamedTuple):
    """One line of a qrels file.

    Attributes
    ----------
    line : int
        Number of the line in the file, from 1.
    query : str
        Id of the query, as it is written in the file.
    item : str
        Id of the item, as it is written in the file.
    grade : int
        Relevance of the item to the query, as it is written in the file. It may be negative.
    """

    line: int  # from 1
    query: str
    item: str
    grade: int


@dataclass(frozen=True)
class QrelsCounts:
    """What became of the judged pairs of a file.

    Attributes
    ----------
    n_pairs : int
        Number of lines of the file that judge a pair.
    n_used : int
        Number of pairs whose query and item are both known.
    n_unknown_queries : int
        Number of distinct query ids of the file that are not in `query_ids`.
    n_unknown_items : int
        Number of distinct item ids, judged for a known query, that are not in `database_ids`.
    n_negative : int
        Number of used pairs with a negative grade.
    """

    n_pairs: int
    n_used: int
    n_unknown_queries: int
    n_unknown_items: int
    n_negative: int


class QrelsJudgements(Judgements):
    """Judged pairs of a qrels file. Build it with `rankbits.affinity.read_judgements`.

    Parameters
    ----------
    rows : ndarray of int64, shape (n, 3)
        The judged pairs as (query, item, level), sorted by query and then by item. Queries and
        items are row numbers from 0, and no pair occurs twice.
    shape : tuple of two int
        The number of queries and the number of items.
    counts : QrelsCounts
        How many pairs of the file were used, and how many ids of it were unknown.
    """

    def __init__(self, rows: np.ndarray, shape: tuple[int, int], counts: QrelsCounts) -> None:
        super().__init__(rows, shape)
        self.counts = counts


def read_judgements(
    path: str | os.PathLike[str], query_ids: Any, database_ids: Any
) -> QrelsJudgements:
    """Affinity from a TREC or BEIR qrels file, for queries and items in the order of their ids.

    Parameters
    ----------
    path : str or path-like
        Text file with one judged pair per line.
    query_ids, database_ids : array-like of str or int
        The id of each query and of each item, in the order of their codes. No id may come twice.

    A pair with an unknown id is left out; the result's `.counts` says how many there were. A
    negative grade is level 0. A pair that comes twice must have the same grade. All other pairs are
    level 0.

    >>> from pathlib import Path; from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     qrels = Path(folder, "test.qrels")
    ...     _ = qrels.write_text("q1 0 d7 2" + chr(10) + "q1 0 d9 1")
    ...     judged = read_judgements(qrels, query_ids=["q0", "q1"], database_ids=["d7", "d8"])
    >>> judged.indices(slice(None), slice(None)).tolist(), judged.counts.n_unknown_items
    ([[0, 0], [1, 0]], 1)
    """
    query_rows = _rows_by_id("query_ids", query_ids)
    item_rows = _rows_by_id("database_ids", database_ids)
    grades, counts = _match(os.fspath(path), query_rows, item_rows)
    rows = np.array([(*pair, max(grade, 0)) for pair, grade in grades.items()], np.int64)
    checked = judgements(rows.reshape(-1, 3), len(query_rows), len(item_rows))
    return QrelsJudgements(checked.rows, checked.shape, counts)


def qrels_pairs(path: str | os.PathLike[str]) -> Iterator[JudgedPair]:
    """The judged pairs of a TREC or BEIR qrels file, in order; any other line is an error.

    Parameters
    ----------
    path : str or path-like
        A UTF-8 text file with one judged pair per line. Empty lines and the header of BEIR are
        skipped.

    Returns
    -------
    iterator of JudgedPair
        The file is opened when the first pair is taken, so errors are raised then or later.
    """
    file = os.fspath(path)
    if not os.path.isfile(file):
        raise InputError(f"path must name a file, there is no {file}")
    with open(file, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            columns = _columns(line, f"{file}, line {number}")
            if columns and not (number == 1 and _is_header(columns)):
                yield _judged_pair(columns, file, number)


def _columns(line: bytes, place: str) -> list[str]:
    """The fields of a line: apart by tabs if it has any, else by spaces."""
    try:
        text = line.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise FileFormatError(f"{place} must be UTF-8 text, got {line[:40]!r}") from None
    return [field.strip() for field in text.split("\t")] if "\t" in text else text.split()


def _is_header(columns: list[str]) -> bool:
    return [name.lower().replace("_", "-") for name in columns] == _HEADER


def _judged_pair(columns: list[str], file: str, number: int) -> JudgedPair:
    ids = [columns[0], columns[2]] if len(columns) == 4 else columns[:-1]
    if len(ids) != 2 or not all(ids) or not _GRADE.fullmatch(columns[-1]):
        raise FileFormatError(
            f"{file}, line {number} must be query, item, level or query, iteration, item, level, "
            f"the level a whole number; got {columns[:5]!r:.80}"
        )
    return JudgedPair(number, ids[0], ids[1], int(columns[-1]))


def _rows_by_id(name: str, values: Any) -> dict[str, int]:
    """Row number of each id; ids that are integers are compared by their digits."""
    # Texts do not become an array of texts, in which each has the bytes of the longest.
    is_list_of_texts = isinstance(values, list | tuple) and _are_texts(values)
    ids = np.array(values, object) if is_list_of_texts else _check.array(name, values)
    is_known = ids.dtype.kind in "iuU" or (ids.dtype == object and _are_texts(ids.ravel()))
    if ids.ndim != 1 or not is_known or len(ids) == 0:
        raise InputError(
            f"{name} must be strings or integers of shape (n,), n > 0; got {_check.describe(ids)}"
        )
    texts = [str(value) for value in ids.tolist()]
    rows = {text: row for row, text in enumerate(texts)}
    if len(rows) < len(texts):
        repeated = next(text for row, text in enumerate(texts) if rows[text] != row)
        raise InputError(f"{name} must be different from each other, {repeated!r} comes twice")
    return rows


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _match(
    file: str, query_rows: dict[str, int], item_rows: dict[str, int]
) -> tuple[dict[tuple[int, int], int], QrelsCounts]:
    """The grade of each pair of a known query and a known item, by their rows."""
    grades: dict[tuple[int, int], int] = {}
    unknown_queries: set[str] = set()
    unknown_items: set[str] = set()
    n_pairs = n_used = 0
    for pair in qrels_pairs(file):
        n_pairs += 1
        query, item = query_rows.get(pair.query), item_rows.get(pair.item)
        if query is None:
            unknown_queries.add(pair.query)
        elif item is None:
            unknown_items.add(pair.item)
        elif grades.setdefault((query, item), pair.grade) != pair.grade:
            raise FileFormatError(
                f"{file}, line {pair.line} gives query {pair.query!r} and item {pair.item!r} the "
                f"level {pair.grade}, an earlier line {grades[query, item]}; judge each pair once"
            )
        else:
            n_used += 1
    if n_pairs and not grades:
        raise InputError(_nothing_known(file, n_pairs, query_rows, item_rows))
    n_negative = sum(grade < 0 for grade in grades.values())
    n_unknown = len(unknown_queries), len(unknown_items)
    return grades, QrelsCounts(n_pairs, n_used, *n_unknown, n_negative)


def _nothing_known(
    file: str, n_pairs: int, query_rows: dict[str, int], item_rows: dict[str, int]
) -> str:
    """What to say of a file of which no pair can be used, with an example of each kind of id."""
    first = next(qrels_pairs(file))
    query, item = next(iter(query_rows)), next(iter(item_rows))
    return (
        f"{file} must judge some of these queries and items, but in none of its {n_pairs} pairs "
        f"are both known: it has ids like {first.query!r} and {first.item!r}, query_ids are like "
        f"{query!r} and database_ids like {item!r}"
    )
