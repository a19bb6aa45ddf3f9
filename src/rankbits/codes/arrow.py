"""Arrow columns of ids and codes, as Parquet and LanceDB hold them.

Codes are bytes of one length: fixed_size_binary, or a fixed_size_list of uint8. What is known about
them stands in the metadata of the schema.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits.codes.note import Note
from rankbits.codes.stored import MODEL_KEY, N_BITS_KEY, SIDE_KEY, Block
from rankbits.errors import InputError

_OLD_N_BITS_KEY = "rankbits:n_bits"  # under which `rankbits encode` once wrote it


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


def metadata_of(note: Note) -> dict[str, str]:
    """A note for the metadata of a schema."""
    known = {N_BITS_KEY: note.n_bits, MODEL_KEY: note.model, SIDE_KEY: note.side}
    return {key: str(value) for key, value in known.items() if value is not None}


def note_of(schema: Any, source: str) -> Note:
    """The note in the metadata of a schema."""
    return parse_metadata(schema.metadata or {}, source)


def parse_metadata(metadata: dict[bytes, bytes], source: str) -> Note:
    """The note in metadata, which may be anything."""
    n_bits = metadata.get(N_BITS_KEY.encode(), metadata.get(_OLD_N_BITS_KEY.encode()))
    known = (n_bits, metadata.get(MODEL_KEY.encode()), metadata.get(SIDE_KEY.encode()))
    texts = [None if raw is None else raw.decode("utf-8", "replace") for raw in known]
    return Note.parse(texts[0], texts[1], texts[2], source)


def code_columns(pa: Any, schema: Any) -> list[str]:
    """Names of the columns that can be packed codes."""
    return [field.name for field in schema if _width(pa, field.type) is not None]


def width_of(pa: Any, schema: Any, column: str, source: str) -> int:
    """Bytes in a code, from the type of its column."""
    kind = _field(schema, column, source).type
    width = _width(pa, kind)
    if width is None:
        raise InputError(
            f"{source} must hold codes as bytes of one length, fixed_size_binary or "
            f"fixed_size_list of uint8, column {column!r} is {kind}"
        )
    return width


def _width(pa: Any, kind: Any) -> int | None:
    if pa.types.is_fixed_size_binary(kind):
        return int(kind.byte_width)
    if pa.types.is_fixed_size_list(kind) and pa.types.is_uint8(kind.value_type):
        return int(kind.list_size)
    return None


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


def blocks_of(batches: Iterable[Any], columns: Columns, source: str) -> Iterator[Block]:
    """Record batches as blocks."""
    for batch in batches:
        for name in columns.names:
            if batch.column(name).null_count:
                raise InputError(f"{source} must have no nulls, column {name!r} has some")
        ids = None
        if columns.ids is not None:
            ids = batch.column(columns.ids).to_numpy(zero_copy_only=False)
        yield ids, _packed(batch.column(columns.codes), source)


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
