"""What is known about items beside their codes: texts, labels and pictures, by id.

It comes from a table, a .parquet or a .jsonl file, with a row for each item. A column `id` names
the items, without it row i is item i; `label` can be filtered by, `image` is a picture, and every
other column is shown as it is. Of a .parquet only ids and labels stay in memory.
"""

import json
import os
import threading
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from rankbits import _check
from rankbits._files import require_file, signature_of, unreadable_files_refused
from rankbits._json import as_json
from rankbits.datasets.pictures import list_pictures
from rankbits.errors import FileFormatError, InputError

ID, LABEL, IMAGE = "id", "label", "image"
_MOST_LABELS = 10_000
_ROW_GROUPS = 4  # of a .parquet that are held in memory, decoded


class TableRows(Protocol):
    """Rows of a table by their number."""

    def __len__(self) -> int: ...

    def columns(self) -> Sequence[str]:
        """Names of all columns."""
        ...

    def column(self, name: str) -> list[Any]:
        """All values of a column."""
        ...

    def row(self, number: int) -> Mapping[str, Any]:
        """One row."""
        ...


class Items:
    """Fields of items by id.

    Parameters
    ----------
    rows : TableRows
        The table.
    what : str
        Its file, for messages.
    """

    def __init__(self, rows: TableRows, what: str) -> None:
        self._rows = rows
        self._order: np.ndarray | None = (
            None  # rows in ascending order of id; None: row i is item i
        )
        if ID in rows.columns():
            ids = _checked_ids(rows.column(ID), what)
            self._order = np.argsort(ids, kind="stable")
            self._ids = ids[self._order]
        self.labels: list[tuple[str, int]] = []  # names, and how many items have each
        self._label_rows = np.empty(0, np.int64)
        if LABEL in rows.columns():
            self._read_labels(rows.column(LABEL))
        self.has_images = IMAGE in rows.columns()

    def _read_labels(self, values: Sequence[Any]) -> None:
        texts = ["" if value is None else str(value) for value in values]
        counts = Counter(texts)
        if len(counts) > _MOST_LABELS:
            return
        # An array of texts would give each the bytes of the longest.
        self._label_names = {name: place for place, name in enumerate(sorted(counts))}
        self._label_rows = np.array([self._label_names[text] for text in texts], np.int64)
        self.labels = [(name, counts[name]) for name in self._label_names if name]

    def __len__(self) -> int:
        return len(self._rows)

    def fields(self, item: int) -> dict[str, Any]:
        """All that is known about an item, ready for JSON; nothing if it has no row."""
        row = self._row_of(item)
        if row is None:
            return {}
        values = self._rows.row(row)
        hidden = (ID, IMAGE)
        return {
            key: as_json(value)
            for key, value in values.items()
            if key not in hidden and value is not None and not isinstance(value, bytes)
        }

    def image(self, item: int) -> Any:
        """What the table says about the picture of an item, None if nothing."""
        row = self._row_of(item) if self.has_images else None
        return None if row is None else self._rows.row(row).get(IMAGE)

    def labelled(self, labels: Sequence[str]) -> np.ndarray:
        """Ids of the items that have one of these labels, ascending."""
        if not self.labels:
            raise InputError("labels must go with a table of items that has a column label")
        unknown = [label for label in labels if label not in self._label_names]
        if unknown:
            raise InputError(f"labels must be labels of items, {unknown[0]!r:.60} is not")
        places = [self._label_names[label] for label in labels]
        rows = np.flatnonzero(np.isin(self._label_rows, places))
        if self._order is None:
            return rows
        by_row = np.empty(len(self._ids), np.int64)
        by_row[self._order] = self._ids
        return np.sort(by_row[rows])

    def _row_of(self, item: int) -> int | None:
        if self._order is None:
            return item if 0 <= item < len(self._rows) else None
        place = int(np.searchsorted(self._ids, item))
        if place == len(self._ids) or self._ids[place] != item:
            return None
        return int(self._order[place])


class _Lines:
    """Rows of a .jsonl file, all in memory."""

    def __init__(self, path: str) -> None:
        with unreadable_files_refused(path, ".jsonl"), open(path, encoding="utf-8") as file:
            self._rows = [json.loads(line) for line in file if line.strip()]
        if not all(isinstance(row, dict) for row in self._rows):
            raise FileFormatError(f"{path} must hold a JSON object on each line")
        self._columns = list(dict.fromkeys(key for row in self._rows for key in row))

    def __len__(self) -> int:
        return len(self._rows)

    def columns(self) -> Sequence[str]:
        return self._columns

    def column(self, name: str) -> list[Any]:
        return [row.get(name) for row in self._rows]

    def row(self, number: int) -> Mapping[str, Any]:
        row: Mapping[str, Any] = self._rows[number]
        return row


class _Parquet:
    """Rows of a .parquet file, decoded by row groups when they are needed."""

    def __init__(self, path: str) -> None:
        parquet = _check.extra("pyarrow.parquet", "--items as .parquet", "files")
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._handle)
        self._signature = signature_of(self._handle)
        with unreadable_files_refused(path, ".parquet"):
            self._file = parquet.ParquetFile(path)
            meta = self._file.metadata
            sizes = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self._path = path
        self._group = lru_cache(_ROW_GROUPS)(self._read_group)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return int(self._starts[-1])

    def columns(self) -> Sequence[str]:
        return list(self._file.schema_arrow.names)

    def column(self, name: str) -> list[Any]:
        with unreadable_files_refused(self._path, ".parquet"):
            values: list[Any] = self._file.read([name]).column(0).to_pylist()
        return values

    def row(self, number: int) -> Mapping[str, Any]:
        group = int(np.searchsorted(self._starts, number, side="right")) - 1
        with self._lock:  # the reader of pyarrow is for one thread at a time
            table = self._group(group)
        row: Mapping[str, Any] = table.slice(number - self._starts[group], 1).to_pylist()[0]
        return row

    def _read_group(self, group: int) -> Any:
        with unreadable_files_refused(self._path, ".parquet"):
            table = self._file.read_row_group(group)
        if signature_of(self._handle) != self._signature:
            raise FileFormatError(f"{self._path} was changed while it was served; start anew")
        return table


class _Pictures:
    """Rows of a folder of pictures: their files, and their classes as labels."""

    def __init__(self, folder: str) -> None:
        listed = list_pictures(folder)
        self._files, self._y, self._names = listed.files, listed.y, listed.names

    def __len__(self) -> int:
        return len(self._files)

    def columns(self) -> Sequence[str]:
        return ["file", IMAGE] + [LABEL] * (self._y is not None)

    def column(self, name: str) -> list[Any]:
        return [self.row(number)[name] for number in range(len(self))]

    def row(self, number: int) -> Mapping[str, Any]:
        file = self._files[number]
        row = {"file": file, IMAGE: file}
        return row if self._y is None else {**row, LABEL: self._names[self._y[number]]}


def load_items(
    path: str | os.PathLike[str] | None, images: str | os.PathLike[str] | None
) -> Items | None:
    """The table of a file; without one, the pictures of a folder; None without either."""
    if path is None:
        return None if images is None else Items(_Pictures(os.fspath(images)), os.fspath(images))
    file = str(require_file(path, "a table of items"))
    ending = os.path.splitext(file)[1]
    if ending not in (".parquet", ".jsonl"):
        raise InputError(f"items must end in .parquet or .jsonl, got {file}")
    return Items(_Parquet(file) if ending == ".parquet" else _Lines(file), file)


def _checked_ids(values: Sequence[Any], what: str) -> np.ndarray:
    if not all(type(value) is int and 0 <= value < 2**63 - 1 for value in values):
        raise FileFormatError(f"{what} must have whole numbers from 0 on in its column id")
    ids = np.array(values, np.int64)
    if len(np.unique(ids)) != len(ids):
        raise FileFormatError(f"{what} must have each id once in its column id")
    return ids
