"""LanceDB: a table of ids and packed codes, as it searches them with the metric hamming.

Codes are a fixed_size_list of uint8 in the column `vector`; the number of bits and the fingerprint
of the model are in the schema's metadata. Lance keeps no checksum of its data, so a flipped bit is
not noticed.
"""

import os
from collections.abc import Iterator
from typing import Any

from rankbits import _check
from rankbits._files import READ_ERRORS, one_line
from rankbits.codes import arrow
from rankbits.codes.arrow import Columns
from rankbits.codes.note import Note
from rankbits.errors import FileFormatError, InputError
from rankbits.index.hamming import HammingIndex
from rankbits.index.interop.blocks import (
    BLOCK,
    EXTRA,
    CodeSource,
    Path,
    blocks,
    gather,
    note_of,
    require_source,
)


def to_lance(
    index: CodeSource,
    uri: Path,
    table: str,
    *,
    id_column: str = "id",
    code_column: str = "vector",
    overwrite: bool = False,
) -> Any:
    """Write ids and codes as a table of LanceDB and return that table.

    Search it with `table.search(packed_code).distance_type("hamming")`.

    Parameters
    ----------
    index : HammingIndex or Collection
        Index whose ids and codes are written.
    uri : str or path-like
        Folder or address of the database.
    table : str
        Name of the table.
    id_column : str, default="id"
        Name of the column with the ids, of type int64.
    code_column : str, default="vector"
        Name of the column with the packed codes, a fixed_size_list of uint8.
    overwrite : bool, default=False
        Whether a table of that name is replaced. By default it is an error if there is one.

    Returns
    -------
    table : lancedb.table.Table
        Table that was written.
    """
    require_source(index)
    pa = _check.extra("pyarrow", "to_lance", EXTRA)
    lancedb = _check.extra("lancedb", "to_lance", EXTRA)
    width = -(-index.n_bits // 8)
    Columns(id_column, code_column).require_two()
    schema = pa.schema(
        [(id_column, pa.int64()), (code_column, pa.list_(pa.uint8(), width))],
        metadata=arrow.metadata_of(note_of(index)),
    )

    def batches() -> Iterator[Any]:
        for ids, packed in blocks(index):
            codes = pa.FixedSizeListArray.from_arrays(pa.array(packed.ravel()), width)
            yield pa.record_batch([pa.array(ids), codes], schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    mode = "overwrite" if overwrite else "create"
    try:
        return lancedb.connect(os.fspath(uri)).create_table(table, reader, mode=mode)
    except ValueError as error:
        raise InputError(f"table {table!r} cannot be created: {one_line(error)}") from None


def from_lance(
    uri: Path,
    table: str,
    kind: str = "auto",
    *,
    n_bits: int | None = None,
    id_column: str | None = "id",
    code_column: str = "vector",
) -> HammingIndex:
    """A HammingIndex of a table of LanceDB, which need not be of rankbits.

    Parameters
    ----------
    uri : folder or address of the database
    table : its name
    kind : kind of the new index
    n_bits : int or None
        Bits in a code if the table does not tell; None takes 8 per byte.
    id_column : a column of integers; None numbers the rows from 0
    code_column : a column of fixed_size_list of uint8, or of fixed_size_binary
    """
    pa = _check.extra("pyarrow", "from_lance", EXTRA)
    lancedb = _check.extra("lancedb", "from_lance", EXTRA)
    source = f"the table {table!r} in {os.fspath(uri)}"
    opened = _open(lancedb, os.fspath(uri), table)

    columns = Columns(id_column, code_column)
    try:
        width = arrow.width_of(pa, opened.schema, code_column, source)
        if id_column is not None:
            arrow.require_ids(pa, opened.schema, id_column, source)
        note = arrow.note_of(opened.schema, source)
        bits = note.resolve_bits(n_bits, width, source)
        batches = opened.search().select(columns.names).to_batches(batch_size=BLOCK)
        content = arrow.blocks_of(batches, columns, source)
        return gather(source, content, Note(bits, note.model, note.side), kind)
    except InputError:
        raise
    except READ_ERRORS as error:
        raise FileFormatError(f"{source} cannot be read: {one_line(error)}") from None


def _open(lancedb: Any, uri: str, table: str) -> Any:
    """The table; LanceDB would make a folder that is not there."""
    if "://" not in uri and not os.path.isdir(uri):
        raise InputError(f"uri must name a database of LanceDB, there is no {uri}")
    try:
        return lancedb.connect(uri).open_table(table)
    except READ_ERRORS as error:
        raise InputError(f"table {table!r} cannot be opened: {one_line(error)}") from None
