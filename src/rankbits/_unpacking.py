"""A limit on what compressed files unpack to, checked before the memory is taken.

A few megabytes of .npz or .parquet can unpack to more memory than the machine has. The arrays of
one file may take at most 1 GiB or 20 times the size of the file, whichever is more, unless the
environment variable RANKBITS_UNPACK_BYTES sets another number of bytes.

The unpacked size of a .npz is in its directory and in the headers of its arrays. In a .parquet file
the metadata have the number of values, and their width unless they are strings or bytes: those are
read as a dictionary, which holds a repeated value once, and measured before they are expanded.
"""

import os
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from rankbits._parquet_footer import read_row_groups
from rankbits.errors import FileFormatError, InputError

VARIABLE = "RANKBITS_UNPACK_BYTES"
_LEAST, _TIMES = 1 << 30, 20
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}


def unpack_limit(path: str | os.PathLike[str]) -> int:
    """Bytes that the arrays of a compressed file may take."""
    number = os.environ.get(VARIABLE, "")
    if not number:
        return max(_LEAST, _TIMES * os.path.getsize(path))
    if not number.isdecimal():
        raise InputError(f"{VARIABLE} must be a number of bytes, got {number!r}")
    return int(number)


def require_unpackable(path: str | os.PathLike[str], n_bytes: int) -> None:
    """Refuse a file whose arrays would take more memory than the limit."""
    limit = unpack_limit(path)
    if n_bytes > limit:
        raise FileFormatError(
            f"{path} would unpack to {n_bytes} bytes, the limit is {limit} for a file of "
            f"{os.path.getsize(path)}; if you trust the file, set {VARIABLE}={n_bytes}"
        )


def require_unpackable_npz(
    path: str | os.PathLike[str], archive: zipfile.ZipFile, names: Iterable[str]
) -> None:
    """Check the named arrays of a .npz before they are read; missing ones are ignored."""
    members = set(archive.namelist())
    entries = [n for name in names for n in (f"{name}.npy", name) if n in members]
    require_unpackable(path, sum(archive.getinfo(entry).file_size for entry in entries))
    for entry in entries:
        if entry.endswith(".npy"):
            _require_true_header(path, archive, entry)


def _require_true_header(
    path: str | os.PathLike[str], archive: zipfile.ZipFile, entry: str
) -> None:
    """Refuse an array whose header promises more bytes than its entry has."""
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:  # field names beyond Latin-1: not an array of numbers
            raise FileFormatError(f"{path} must hold plain arrays, {entry!r} has named fields")
        shape, _, dtype = readers[version](file)
        size = archive.getinfo(entry).file_size - file.tell()
    n_bytes = prod(shape) * dtype.itemsize
    if not dtype.hasobject and n_bytes > size:
        raise FileFormatError(
            f"{path} is damaged: the header of {entry!r} promises {n_bytes} bytes, it has {size}"
        )


def require_unpackable_parquet(
    path: str | os.PathLike[str],
    file: Any,
    names: Sequence[str] | None = None,
    *,
    one_group_at_a_time: bool = False,
) -> None:
    """Check the columns of an open pyarrow ParquetFile, all of them if no names are given.

    Strings and bytes without a fixed length count as 4 bytes each here, as in a dictionary.
    """
    sizes = [
        sum(leaf.n * (leaf.width or 4) for leaf in group) for group in _leaves(path, file, names)
    ]
    require_unpackable(path, max(sizes, default=0) if one_group_at_a_time else sum(sizes))


def batch_rows(
    path: str | os.PathLike[str], file: Any, names: Sequence[str] | None, most: int
) -> int:
    """Rows to read at a time, at most `most`, so that strings of any length stay in the limit."""
    leaves = [leaf for group in _leaves(path, file, names) for leaf in group]
    longest = max((leaf.longest for leaf in leaves if leaf.width is None), default=1)
    return max(1, min(most, unpack_limit(path) // max(1, longest)))


def read_parquet_table(
    path: str | os.PathLike[str], parquet: Any, file: Any, names: Sequence[str] | None = None
) -> Any:
    """A pyarrow table of the named columns of an open ParquetFile, within the limit."""
    require_unpackable_parquet(path, file, names)
    leaves = [leaf for group in _leaves(path, file, names) for leaf in group]
    if sum(leaf.most_bytes for leaf in leaves) <= unpack_limit(path):
        return file.read(columns=names)
    kinds = {field.name: field.type for field in file.schema_arrow}
    texts = [name for name in names or kinds if is_text(kinds[name])]
    for leaf in leaves:
        if leaf.width is None and (leaf.shares_prefixes or leaf.path not in kinds):
            require_unpackable(path, leaf.most_bytes)  # it would unpack as it is read
    with parquet.ParquetFile(path, read_dictionary=texts) as again:
        table = again.read(columns=names)
    require_unpackable(path, sum(map(unpacked_bytes, table.columns)))
    for place, name in enumerate(table.column_names):
        if name in texts:
            table = table.set_column(place, name, _expand(table.column(place), kinds[name]))
    return table


def unpacked_bytes(column: Any) -> int:
    """Bytes of an Arrow column once its dictionary, if it has one, is expanded."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    total = 0
    for chunk in column.chunks:
        values = chunk.dictionary
        if is_text(values.type):
            lengths = pc.fill_null(pc.binary_length(values), 0).to_pylist()
        else:
            lengths = [-(-values.nbytes // max(1, len(values)))] * len(values)
        indices = pc.drop_null(chunk.indices).to_numpy(zero_copy_only=False)
        uses = np.bincount(indices, minlength=len(values)).tolist()
        total += sum(n * length for n, length in zip(uses, lengths, strict=True))
    return total


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is strings or bytes whose lengths differ."""
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


@dataclass(frozen=True)
class _Leaf:
    """A column of a row group as Parquet stores it: that of a list holds the lists' values."""

    path: str
    n: int  # values
    width: int | None  # bytes of a value; None if they differ
    longest: int  # bytes that no value is longer than
    shares_prefixes: bool  # of strings

    @property
    def most_bytes(self) -> int:
        return self.n * (self.width or self.longest)


def _leaves(
    path: str | os.PathLike[str], file: Any, names: Sequence[str] | None
) -> list[list[_Leaf]]:
    """The named columns of each row group."""
    widths = [_width(file.schema.column(place)) for place in range(len(file.schema))]
    groups = []
    for columns in read_row_groups(path):
        if len(columns) != len(widths):
            raise FileFormatError(f"{path} is damaged: a row group lacks columns")
        groups.append(
            [
                _Leaf(column.path, column.n_values, width, column.n_bytes, column.shares_prefixes)
                for column, width in zip(columns, widths, strict=True)
                if names is None or _is_among(column.path, names)
            ]
        )
    return groups


def _is_among(path: str, names: Sequence[str]) -> bool:
    return any(path == name or path.startswith(f"{name}.") for name in names)


def _width(kind: Any) -> int | None:
    """Bytes of a value in memory; short integers are stored wider than that."""
    if kind.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(kind.length)
    logical = str(kind.logical_type).replace(" ", "")
    for bits in (8, 16):
        if f"bitWidth={bits}," in logical:
            return bits // 8
    return _WIDTHS.get(kind.physical_type)


def _expand(column: Any, kind: Any) -> Any:
    return column.cast(column.type.value_type).cast(kind)
