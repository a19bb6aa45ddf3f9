"""Readers of .parquet: one column, all numeric columns side by side, or all columns by name."""

import os
from typing import Any

import numpy as np

from rankbits._check import extra
from rankbits._files import require_file, unreadable_files_refused
from rankbits._unpacking import read_parquet_table, require_unpackable, unpacked_bytes
from rankbits.datasets._formats import pick_key
from rankbits.errors import FileFormatError


def read_parquet(path: str, key: str | None) -> np.ndarray:
    """The column `key`, or the only column, or several numeric columns as a matrix.

    Lists of numbers of one length and bytes of one length give a matrix; numbers, bools and strings
    give a 1-D array. Nulls are refused.
    """
    parquet = extra("pyarrow.parquet", "reading .parquet", "files")
    with unreadable_files_refused(path, ".parquet"), parquet.ParquetFile(path) as file:
        names = list(file.schema_arrow.names)
        if key is None and len(names) > 1 and all(map(_is_number, file.schema_arrow.types)):
            columns = read_parquet_table(path, parquet, file)
            return np.column_stack([_values(path, name, columns[name]) for name in names])
        name = pick_key(path, key, names)
        if names.count(name) > 1:
            raise FileFormatError(f"{path} has {names.count(name)} columns named {name!r}")
        return _values(path, name, read_parquet_table(path, parquet, file, [name])[name])


def load_columns(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """All columns of a .parquet file by name, each a 1-D array; a null among numbers is NaN.

    Parameters
    ----------
    path : str or path-like
        The .parquet file.
    """
    file = require_file(path, "a .parquet file")
    parquet = extra("pyarrow.parquet", "reading .parquet", "files")
    with unreadable_files_refused(file, ".parquet"), parquet.ParquetFile(file) as stored:
        table = read_parquet_table(file, parquet, stored)
        require_unpackable(file, sum(map(unpacked_bytes, table.columns)))
        return {name: np.asarray(table[name].to_numpy()) for name in table.column_names}


def _values(path: str, name: str, column: Any) -> np.ndarray:
    """An Arrow column as an array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        raise FileFormatError(f"{path} must have no nulls, column {name!r} has {column.null_count}")
    if pa.types.is_dictionary(column.type):
        require_unpackable(path, unpacked_bytes(column))
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _matrix_of_lists(path, name, column)
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_binary(kind):
        return _matrix_of_bytes(path, name, column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        require_unpackable(path, 4 * len(column) * (pc.max(pc.utf8_length(column)).as_py() or 0))
        return np.array(column.to_pylist(), dtype=np.str_)
    if _is_number(kind):
        return np.asarray(column.to_numpy())
    raise FileFormatError(
        f"{path} must hold numbers, strings, lists of numbers or bytes, column {name!r} is {kind}"
    )


def _matrix_of_lists(path: str, name: str, column: Any) -> np.ndarray:
    import pyarrow.compute as pc

    values = pc.list_flatten(column)
    if values.null_count or not _is_number(values.type):
        raise FileFormatError(
            f"{path} must hold lists of numbers without nulls, column {name!r} is {column.type}"
        )
    lengths = pc.list_value_length(column).to_numpy()
    width = _one_width(path, name, lengths)
    return np.asarray(values.to_numpy()).reshape(len(column), width)


def _matrix_of_bytes(path: str, name: str, column: Any) -> np.ndarray:
    import pyarrow.compute as pc

    width = _one_width(path, name, pc.binary_length(column).to_numpy())
    raw = b"".join(value.as_py() for value in column)
    return np.frombuffer(raw, np.uint8).reshape(len(column), width)


def _one_width(path: str, name: str, lengths: np.ndarray) -> int:
    """The length that all rows share; 0 where there is no row."""
    if lengths.size and lengths.min() != lengths.max():
        raise FileFormatError(
            f"{path} must hold rows of one length, column {name!r} has {lengths.min()} "
            f"to {lengths.max()}"
        )
    return int(lengths[0]) if lengths.size else 0


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    )
