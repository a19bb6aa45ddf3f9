"""Rows of a file larger than memory: its shape is read at once, its rows block by block.

Blocks begin at multiples of their size, so a run that continues in the middle sees the same blocks
as one that started at the first row.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rankbits._check import extra
from rankbits._files import unreadable_files_refused
from rankbits._mapped import unchanged
from rankbits._unpacking import batch_rows, require_unpackable_parquet
from rankbits.datasets._arrays import load_array, split_key
from rankbits.datasets._formats import pick_key
from rankbits.datasets._parquet import _is_number, _values
from rankbits.errors import FileFormatError, InputError

_BATCH_ROWS = 4096


class Rows(Protocol):
    """Rows of one shape that are read block by block: those of a file, or pictures of a folder."""

    @property
    def path(self) -> str:
        """The file or folder."""
        ...

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        ...

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        ...

    def blocks(self, start: int, step: int) -> Iterator[np.ndarray]:
        """Blocks of `step` rows, the last one shorter, from row `start`, a multiple of step."""
        ...

    def identity(self) -> dict[str, Any]:
        """What tells these rows from others, without reading them; JSON can hold it."""
        ...


@dataclass(frozen=True)
class RowFile:
    """A file of rows that have one shape.

    Attributes
    ----------
    path, key : str, and str or None
        The file, and the name of its array if it holds several.
    n_rows : int
        Number of rows.
    row_shape : tuple of int
        Shape of one row, which has at least one dimension.
    """

    path: str
    key: str | None
    n_rows: int
    row_shape: tuple[int, ...]

    def identity(self) -> dict[str, Any]:
        """What tells this input from another, without reading it."""
        stat = os.stat(self.path)
        return {
            "path": os.path.abspath(self.path),
            "key": self.key,
            "size": stat.st_size,
            "mtime_ns": stat.st_mtime_ns,
            "shape": [self.n_rows, *self.row_shape],
        }

    def blocks(self, start: int, step: int) -> Iterator[np.ndarray]:
        """Blocks of `step` rows, the last one shorter, from row `start`, a multiple of step."""
        if _is_parquet(self.path):
            return _regrouped(_parquet_parts(self, start), step)
        return _array_blocks(load_array(self.path, self.key), start, step)


def open_rows(path: str | os.PathLike[str]) -> RowFile:
    """The shape of a file of numbers, FILE or FILE:KEY; see `load_array` for what it may be."""
    file, key = split_key(path)
    is_parquet = _is_parquet(file) and os.path.isfile(file) and os.path.getsize(file) > 0
    shape, kind = _parquet_shape(file, key) if is_parquet else _array_shape(file, key)
    if len(shape) < 2 or kind not in "biuf":
        raise InputError(
            f"{path} must hold rows of numbers, shape (n, features), got shape {shape}"
        )
    return RowFile(file, key, shape[0], shape[1:])


def _array_blocks(rows: np.ndarray, start: int, step: int) -> Iterator[np.ndarray]:
    for k in range(start, len(rows), step):
        with unchanged(rows):
            yield np.asarray(rows[k : k + step])


def _is_parquet(file: str) -> bool:
    return os.path.splitext(file)[1] == ".parquet"


def _array_shape(file: str, key: str | None) -> tuple[tuple[int, ...], str]:
    rows = load_array(file, key)
    return rows.shape, rows.dtype.kind


def _parquet_shape(file: str, key: str | None) -> tuple[tuple[int, ...], str]:
    """Rows by the file's own count, the shape of a row by its first ones."""
    parquet = extra("pyarrow.parquet", "reading .parquet", "files")
    with unreadable_files_refused(file, ".parquet"), parquet.ParquetFile(file) as stored:
        n_rows = int(stored.metadata.num_rows)
    first = next(_parquet_parts(RowFile(file, key, n_rows, ()), 0), np.empty(0))
    return (n_rows, *first.shape[1:]), first.dtype.kind


def _parquet_parts(rows: RowFile, start: int) -> Iterator[np.ndarray]:
    """Rows from `start` on in parts of any length; row groups before it are not read."""
    parquet = extra("pyarrow.parquet", "reading .parquet", "files")
    with unreadable_files_refused(rows.path, ".parquet"), parquet.ParquetFile(rows.path) as stored:
        names = _columns(rows, stored)
        require_unpackable_parquet(rows.path, stored, names, one_group_at_a_time=True)
        groups: list[int] = []
        skipped = 0
        for group in range(stored.num_row_groups):
            n_rows = stored.metadata.row_group(group).num_rows
            if groups or skipped + n_rows > start:
                groups.append(group)
            else:
                skipped += n_rows
        n_batch = batch_rows(rows.path, stored, names, _BATCH_ROWS)
        for batch in stored.iter_batches(n_batch, row_groups=groups, columns=names):
            part = _matrix(rows, batch, names)[max(0, start - skipped) :]
            skipped += batch.num_rows
            if len(part):
                yield part


def _columns(rows: RowFile, stored: Any) -> list[str]:
    """The column that the key names, the only one, or all of them if all are numbers."""
    names = list(stored.schema_arrow.names)
    if rows.key is None and len(names) > 1 and all(map(_is_number, stored.schema_arrow.types)):
        return names
    return [pick_key(rows.path, rows.key, names)]


def _matrix(rows: RowFile, batch: Any, names: list[str]) -> np.ndarray:
    """A batch as rows of one shape."""
    import pyarrow as pa

    table = pa.Table.from_batches([batch])
    columns = [_values(rows.path, name, table[name]) for name in names]
    matrix = columns[0] if len(columns) == 1 else np.column_stack(columns)
    if rows.row_shape and matrix.shape[1:] != rows.row_shape:
        raise FileFormatError(
            f"{rows.path} must hold rows of one shape, got {rows.row_shape} and {matrix.shape[1:]}"
        )
    return matrix


def _regrouped(parts: Iterator[np.ndarray], step: int) -> Iterator[np.ndarray]:
    """The same rows in blocks of `step`."""
    waiting: list[np.ndarray] = []
    n_waiting = 0
    for part in parts:
        while n_waiting + len(part) >= step:
            cut = step - n_waiting
            yield np.concatenate([*waiting, part[:cut]])
            waiting, n_waiting, part = [], 0, part[cut:]
        waiting.append(part)
        n_waiting += len(part)
    if n_waiting:
        yield np.concatenate(waiting)
