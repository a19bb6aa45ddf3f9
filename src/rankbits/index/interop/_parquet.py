"""Parquet: an int64 column of ids and a fixed_size_binary column of codes, a row group at a time.

The number of bits stands in the schema's metadata under `rankbits.n_bits`. Every page has a
checksum, which is compared when the file is read back; the footer has none in Parquet.
"""

from typing import Any

from rankbits import _check
from rankbits._files import READ_ERRORS, one_line, write_atomically
from rankbits.errors import FileFormatError, InputError
from rankbits.index._hamming import HammingIndex
from rankbits.index.interop._arrow import blocks_of, pyarrow_for, require_ids, width_of
from rankbits.index.interop._blocks import (
    BLOCK,
    EXTRA,
    N_BITS,
    Path,
    Source,
    bits_of,
    blocks,
    gathered,
    require_file,
)


def to_parquet(
    index: Source,
    path: Path,
    *,
    id_column: str = "id",
    code_column: str = "code",
    row_group: int = BLOCK,
) -> None:
    """Write ids and codes as a .parquet file; a file of that name is replaced at the end.

    Parameters
    ----------
    index : HammingIndex
    path : the file
    id_column, code_column : names of the columns
    row_group : items in a row group, which is what stays in memory at a time
    """
    pa = pyarrow_for("to_parquet")
    parquet = _check.extra("pyarrow.parquet", "to_parquet", EXTRA)
    _check.whole("row_group", row_group, 1, 1 << 24)
    if id_column == code_column:
        raise InputError(f"id_column and code_column must differ, got {id_column!r} twice")
    code = pa.binary(-(-index.n_bits // 8))
    schema = pa.schema(
        [pa.field(id_column, pa.int64(), False), pa.field(code_column, code, False)],
        metadata={N_BITS: str(index.n_bits)},
    )
    options = {"compression": "zstd", "write_page_checksum": True, "use_dictionary": False}
    with write_atomically(path) as file, parquet.ParquetWriter(file, schema, **options) as writer:
        for ids, packed in blocks(index, row_group):
            raw = pa.FixedSizeBinaryArray.from_buffers(code, len(ids), [None, pa.py_buffer(packed)])
            writer.write_batch(pa.record_batch([pa.array(ids), raw], schema=schema), row_group)


def from_parquet(
    path: Path,
    kind: str = "auto",
    *,
    n_bits: int | None = None,
    id_column: str | None = "id",
    code_column: str = "code",
) -> HammingIndex:
    """A HammingIndex of a .parquet file, which need not be of rankbits.

    Parameters
    ----------
    path : the file
    kind : kind of the new index
    n_bits : int or None
        Bits in a code if the file does not tell; None takes 8 a byte.
    id_column : a column of integers; None numbers the rows from 0
    code_column : a column of fixed_size_binary, or of fixed_size_list of uint8
    """
    pa = pyarrow_for("from_parquet")
    parquet = _check.extra("pyarrow.parquet", "from_parquet", EXTRA)
    name = require_file(path, "a .parquet file")
    try:
        with parquet.ParquetFile(name, page_checksum_verification=True) as file:
            return _index_of(pa, file, name, kind, n_bits, id_column, code_column)
    except InputError:
        raise
    except READ_ERRORS as error:
        raise FileFormatError(
            f"{name} is not a readable .parquet file: {one_line(error)}"
        ) from None


def _index_of(
    pa: Any,
    file: Any,
    name: str,
    kind: str,
    n_bits: int | None,
    id_column: str | None,
    code_column: str,
) -> HammingIndex:
    schema = file.schema_arrow
    width = width_of(pa, schema, code_column, name)
    if id_column is not None:
        require_ids(pa, schema, id_column, name)
    wanted = bits_of(n_bits, width, (schema.metadata or {}).get(N_BITS.encode()), name)
    columns = [column for column in (id_column, code_column) if column is not None]
    batches = file.iter_batches(BLOCK, columns=columns)
    found = blocks_of(batches, id_column, code_column, name)
    index = gathered(name, found, wanted, kind, is_file=True)
    if len(index) != file.metadata.num_rows:
        raise FileFormatError(
            f"{name} is damaged: it tells of {file.metadata.num_rows} rows and has {len(index)}"
        )
    return index
