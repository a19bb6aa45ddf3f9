"""Arrow columns of ids and codes, as Parquet and LanceDB hold them, and the index they make.

Codes are bytes of one length: fixed_size_binary, or a fixed_size_list of uint8.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.errors import InputError
from rankbits.index.hamming import HammingIndex
from rankbits.index.interop.blocks import EXTRA, N_BITS, Block, bits_of, gathered


@dataclass(frozen=True)
class Columns:
    """Names of the columns; without ids, rows are numbered from 0."""

    ids: str | None
    codes: str

    def require_two(self) -> None:
        """Refuse one name for both."""
        if self.ids == self.codes:
            raise InputError(f"id_column and code_column must differ, got {self.ids!r} twice")

    @property
    def names(self) -> list[str]:
        """Those that are read."""
        return [name for name in (self.ids, self.codes) if name is not None]


def index_of(
    schema: Any,
    read: Callable[[list[str]], Iterable[Any]],
    columns: Columns,
    source: str,
    *,
    n_bits: int | None,
    kind: str,
    is_file: bool = False,
) -> HammingIndex:
    """An index of the record batches that `read` gives of some columns of a schema."""
    pa = pyarrow_for("reading columns")
    width = width_of(pa, schema, columns.codes, source)
    if columns.ids is not None:
        require_ids(pa, schema, columns.ids, source)
    stored_bits = bits_of(n_bits, width, (schema.metadata or {}).get(N_BITS.encode()), source)
    blocks_read = blocks_of(read(columns.names), columns.ids, columns.codes, source)
    return gathered(source, blocks_read, stored_bits, kind, is_file=is_file)


def pyarrow_for(needed_for: str) -> Any:
    """The module pyarrow."""
    return _check.extra("pyarrow", needed_for, EXTRA)


def width_of(pa: Any, schema: Any, column: str, source: str) -> int:
    """Bytes in a code, from the type of its column."""
    kind = _field(schema, column, source).type
    if pa.types.is_fixed_size_binary(kind):
        return int(kind.byte_width)
    if pa.types.is_fixed_size_list(kind) and pa.types.is_uint8(kind.value_type):
        return int(kind.list_size)
    raise InputError(
        f"{source} must hold codes as bytes of one length, fixed_size_binary or fixed_size_list of "
        f"uint8, column {column!r} is {kind}"
    )


def require_ids(pa: Any, schema: Any, column: str, source: str) -> None:
    """Ids are integers of any size."""
    kind = _field(schema, column, source).type
    if not pa.types.is_integer(kind):
        raise InputError(f"{source} must hold ids as integers, column {column!r} is {kind}")


def _field(schema: Any, column: str, source: str) -> Any:
    if schema.names.count(column) != 1:
        raise InputError(
            f"{source} must have one column {column!r}, it has {', '.join(schema.names)}"
        )
    return schema.field(column)


def blocks_of(
    batches: Iterable[Any], id_column: str | None, code_column: str, source: str
) -> Iterator[Block]:
    """Record batches as blocks; without an id column items are numbered from 0."""
    n_before = 0
    for batch in batches:
        n = batch.num_rows
        for name in (code_column, id_column):
            if name is not None and batch.column(name).null_count:
                raise InputError(f"{source} must have no nulls, column {name!r} has some")
        rows = np.arange(n_before, n_before + n)
        ids = rows if id_column is None else batch.column(id_column).to_numpy(zero_copy_only=False)
        yield ids, _packed(batch.column(code_column), source)
        n_before += n


def _packed(column: Any, source: str) -> np.ndarray:
    """A column of codes as a matrix of bytes, which share Arrow's memory."""
    if hasattr(column, "flatten"):
        values = column.flatten()
        if values.null_count:
            raise InputError(f"{source} must have no nulls, a code has some")
        return np.asarray(values.to_numpy()).reshape(len(column), column.type.list_size)
    width = column.type.byte_width
    data = column.buffers()[1]
    raw = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    start = column.offset * width
    return raw[start : start + len(column) * width].reshape(len(column), width)
