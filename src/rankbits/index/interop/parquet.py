"""Parquet: an int64 column of ids and a fixed_size_binary column of codes, a row group at a time.

The number of bits and, if it is known, the fingerprint of the model are in the schema's metadata.
"""

from rankbits import _check
from rankbits._files import require_file, write_atomically
from rankbits.codes import parquet, stored
from rankbits.codes.arrow import Columns
from rankbits.index.hamming import HammingIndex
from rankbits.index.interop.blocks import (
    EXTRA,
    CodeSource,
    Path,
    blocks,
    index_of,
    note_of,
    require_source,
)


def to_parquet(
    index: CodeSource,
    path: Path,
    *,
    id_column: str = "id",
    code_column: str = "code",
    row_group: int = stored.BLOCK,
) -> None:
    """Write ids and codes as a .parquet file; a file of that name is replaced at the end.

    Parameters
    ----------
    index : HammingIndex or Collection
        Index whose ids and codes are written.
    path : str or path-like
        File to write.
    id_column, code_column : str, default="id" and "code"
        Names of the columns with the ids and with the packed codes.
    row_group : int
        Number of items in a row group, which is what is in memory at a time.
    """
    require_source(index)
    _check.extra("pyarrow", "to_parquet", EXTRA)
    _check.whole("row_group", row_group, 1, 1 << 24)
    columns = Columns(id_column, code_column)
    columns.require_two()
    ids = index.ids
    packed = (packed for _, packed in blocks(index, row_group))
    with write_atomically(path) as file:
        parquet.write(file, note_of(index), len(ids), packed, ids, columns)


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
    path : str or path-like
        File to read.
    kind : str, default="auto"
        How the new index searches: "auto", "scan", "mih" or "ivf", as in `HammingIndex`.
    n_bits : int or None, default=None
        Code length, for a file that does not say it. None then takes 8 bits for each byte.
    id_column : str or None, default="id"
        Name of a column of integers, which are the ids. None numbers the rows from 0.
    code_column : str, default="code"
        Name of the column with the packed codes, of type fixed_size_binary or fixed_size_list of
        uint8.
    """
    _check.extra("pyarrow", "from_parquet", EXTRA)
    name = require_file(path, "a .parquet file")
    with parquet.open_codes(name, Columns(id_column, code_column)) as content:
        return index_of(content, n_bits, kind)
