"""Code files of the format Parquet: a column of bytes of one length, and if known one of ids.

A block is a row group. Every page has a checksum, which is compared when the file is read back; the
footer has none in Parquet.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from rankbits import _check
from rankbits._files import unreadable_files_refused
from rankbits._unpacking import require_unpackable_parquet
from rankbits.codes import stored
from rankbits.codes.arrow import (
    Columns,
    blocks_of,
    code_columns,
    metadata_of,
    note_of,
    require_ids,
    width_of,
)
from rankbits.codes.note import Note
from rankbits.codes.stored import Block, StoredCodes
from rankbits.errors import FileFormatError, InputError

COLUMNS = Columns("id", "code")


def write(
    file: IO[bytes],
    note: Note,
    n: int,
    blocks: Iterable[np.ndarray],
    ids: np.ndarray | None = None,
    columns: Columns = COLUMNS,
) -> None:
    """Write n codes, a row group for each block."""
    pa, parquet = _packages("writing .parquet")
    width = note.width
    fields = [pa.field(columns.codes, pa.binary(width), False)]
    if ids is not None:
        fields.insert(0, pa.field(columns.ids, pa.int64(), False))
    schema = pa.schema(fields, metadata=metadata_of(note))
    options = {"compression": "zstd", "write_page_checksum": True, "use_dictionary": False}
    with parquet.ParquetWriter(file, schema, **options) as writer:
        start = 0
        for block in stored.checked_blocks(n, width, blocks):
            raw = pa.py_buffer(block)
            arrays = [
                pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(block), [None, raw])
            ]
            if ids is not None:
                arrays.insert(0, pa.array(ids[start : start + len(block)]))
            writer.write_batch(pa.record_batch(arrays, schema=schema), max(1, len(block)))
            start += len(block)


def read_note(path: str, key: str | None = None) -> Note | None:
    """What a file says about its codes, or about those in one column; None if it says nothing."""
    pa, parquet = _packages("reading .parquet")
    with unreadable_files_refused(path, ".parquet"), parquet.ParquetFile(path) as file:
        note = note_of(file.schema_arrow, path)
        is_codes = key is None or key in code_columns(pa, file.schema_arrow)
        return note if note.n_bits is not None and is_codes else None


@contextmanager
def open_codes(path: str, columns: Columns | None = None) -> Iterator[StoredCodes]:
    """The codes of a file; without names of columns, of its only column of bytes of one length."""
    pa, parquet = _packages("reading .parquet")
    with (
        unreadable_files_refused(path, ".parquet"),
        parquet.ParquetFile(path, page_checksum_verification=True) as file,
    ):
        schema = file.schema_arrow
        columns = columns or Columns(None, _only_code_column(pa, schema, path))
        names = [name for name in columns.names if name in schema.names]
        require_unpackable_parquet(path, file, names)
        width = width_of(pa, schema, columns.codes, path)
        if columns.ids is not None:
            require_ids(pa, schema, columns.ids, path)
        batches = file.iter_batches(stored.BLOCK, columns=columns.names)
        blocks = _counted(blocks_of(batches, columns, path), file.metadata.num_rows, path)
        yield StoredCodes(path, note_of(schema, path), width, blocks)


def _only_code_column(pa: Any, schema: Any, path: str) -> str:
    names = code_columns(pa, schema)
    if len(names) != 1:
        raise InputError(
            f"{path} must have one column of bytes of one length, or FILE:KEY must name one; it "
            f"has {', '.join(names) or 'none'}"
        )
    return names[0]


def _counted(blocks: Iterable[Block], n: int, path: str) -> Iterator[Block]:
    """The same blocks; they must have as many rows as the footer says."""
    n_read = 0
    for block in blocks:
        n_read += len(block[1])
        yield block
    if n_read != n:
        raise FileFormatError(
            f"{path} is damaged: its footer promises {n} rows and it has {n_read}"
        )


def _packages(needed_for: str) -> tuple[Any, Any]:
    return (
        _check.extra("pyarrow", needed_for, "files"),
        _check.extra("pyarrow.parquet", needed_for, "files"),
    )
