"""Parquet: an int64 column of ids and a fixed_size_binary column of codes, a row group at a time.

The number of bits stands in the schema's metadata under `rankbits.n_bits`. Every page has a
checksum, which is compared when the file is read back; the footer has none in Parquet.
"""

from rankbits import _check
from rankbits._files import READ_ERRORS, one_line, write_atomically
from rankbits._unpacking import require_unpackable_parquet
from rankbits.errors import FileFormatError, InputError
from rankbits.index.hamming import HammingIndex
from rankbits.index.interop.arrow import Columns, index_of, pyarrow_for
from rankbits.index.interop.blocks import (
    BLOCK,
    EXTRA,
    N_BITS,
    Path,
    Source,
    blocks,
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
    Columns(id_column, code_column).require_two()
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
    pyarrow_for("from_parquet")
    parquet = _check.extra("pyarrow.parquet", "from_parquet", EXTRA)
    name = require_file(path, "a .parquet file")
    columns = Columns(id_column, code_column)
    try:
        with parquet.ParquetFile(name, page_checksum_verification=True) as file:
            names = [each for each in columns.names if each in file.schema_arrow.names]
            require_unpackable_parquet(name, file, names)
            index = index_of(
                file.schema_arrow,
                lambda names: file.iter_batches(BLOCK, columns=names),
                columns,
                name,
                n_bits=n_bits,
                kind=kind,
                is_file=True,
            )
            n_told = file.metadata.num_rows
    except InputError:
        raise
    except READ_ERRORS as error:
        raise FileFormatError(
            f"{name} is not a readable .parquet file: {one_line(error)}"
        ) from None
    if len(index) != n_told:
        raise FileFormatError(f"{name} is damaged: it tells of {n_told} rows and has {len(index)}")
    return index
