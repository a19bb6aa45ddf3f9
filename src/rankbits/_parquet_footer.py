"""What the footer of a Parquet file tells of its columns, read without pyarrow.

pyarrow ends the process when it is asked about a column whose metadata is damaged, so whoever wants
to look before reading looks here. The footer is a Thrift structure in the compact protocol; the
fields used are those of parquet.thrift: FileMetaData 4 row_groups, RowGroup 1 columns, ColumnChunk
3 meta_data, and of that 2 encodings, 3 path_in_schema, 5 num_values, 6 total_uncompressed_size.
"""

import os
from typing import Any, NamedTuple

from rankbits.errors import FileFormatError

_MAGIC = b"PAR1"
_DELTA_BYTE_ARRAY = 7
_MAX_DEPTH = 32
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)


class ColumnChunk(NamedTuple):
    """A column of a row group; that of a list holds the values of the lists."""

    path: str
    n_values: int
    n_bytes: int  # unpacked, as the file stores it
    shares_prefixes: bool  # of strings


def read_row_groups(path: str | os.PathLike[str]) -> list[list[ColumnChunk]]:
    """The columns of every row group, in the order of the schema."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - 8))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or length > size - 12:
            raise FileFormatError(f"{path} is not a readable .parquet file: it has no footer")
        file.seek(size - 8 - length)
        raw = file.read(length)
    try:
        footer = _Reader(raw).struct()
        return [[_chunk(column[3]) for column in group[1]] for group in footer.get(4, [])]
    except (IndexError, KeyError, TypeError, UnicodeDecodeError, ValueError, AttributeError):
        raise FileFormatError(f"{path} is not a readable .parquet file: damaged footer") from None


def _chunk(metadata: dict[int, Any]) -> ColumnChunk:
    name = ".".join(part.decode() for part in metadata[3])
    n_values, n_bytes = int(metadata[5]), int(metadata[6])
    if n_values < 0 or n_bytes < 0:
        raise ValueError("a negative size")
    return ColumnChunk(name, n_values, n_bytes, _DELTA_BYTE_ARRAY in metadata[2])


class _Reader:
    """Thrift's compact protocol: structures as dictionaries by field number."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _MAX_DEPTH:
            raise ValueError("too deep")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._signed()
            is_flag = kind in (_TRUE, _FALSE)
            fields[number] = kind == _TRUE if is_flag else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return self._signed()
        if kind in (_TRUE, _FALSE, _BYTE):  # of a list: a byte each
            return self._byte()
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _BINARY:
            return self._take(self._varint())
        if kind in (_LIST, _SET):
            head = self._byte()
            n, item = head >> 4, head & 15
            n = self._varint() if n == 15 else n
            return [self._value(item, depth + 1) for _ in range(self._bounded(n))]
        if kind == _MAP:
            n = self._bounded(self._varint())
            kinds = self._byte() if n else 0
            return [
                (self._value(kinds >> 4, depth + 1), self._value(kinds & 15, depth + 1))
                for _ in range(n)
            ]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise ValueError(f"unknown type {kind}")

    def _bounded(self, n: int) -> int:
        """A number of elements, each of which takes a byte at least."""
        if n > len(self._data) - self._at:
            raise ValueError("more elements than bytes")
        return n

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _take(self, n: int) -> bytes:
        self._at += self._bounded(n)
        return self._data[self._at - n : self._at]

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    def _signed(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)
