"""pgvector: codes in PostgreSQL as bit(n), by files for COPY or over a connection."""

from collections.abc import Iterator
from typing import Any

from rankbits import _check
from rankbits._files import require_file, write_atomically
from rankbits.codes import BinaryCodes
from rankbits.codes.note import Note
from rankbits.errors import InputError
from rankbits.index.hamming import HammingIndex
from rankbits.index.interop.blocks import (
    EXTRA,
    CodeSource,
    Path,
    blocks,
    gather,
    require_source,
)
from rankbits.index.interop.pgvector_sql import Name, columns_of, quoted
from rankbits.index.interop.postgres_copy import (
    SIGNATURE,
    binary_chunks,
    bit_texts,
    read_binary,
    read_text,
    text_chunks,
)

_INSERTED = 1000  # rows in one INSERT
_FILE_CHUNK = 1 << 20  # bytes


# Files


def to_pgvector_copy(index: CodeSource, path: Path, *, binary: bool = False) -> None:
    r"""Write ids and codes as a file for `\copy table (id, code) from 'file'`.

    With `binary`, the format is that of COPY ... WITH (FORMAT binary); it is smaller, and a
    truncated file is noticed.

    Parameters
    ----------
    index : HammingIndex or Collection
        Index whose ids and codes are written.
    path : str or path-like
        File to write. A file of that name is replaced at the end.
    binary : bool, default=False
        Whether to write the binary format of COPY; the default is its text format.
    """
    require_source(index)
    with write_atomically(path) as file:
        for chunk in binary_chunks(index) if binary else text_chunks(index):
            file.write(chunk)


def from_pgvector_copy(
    path: Path, kind: str = "auto", *, n_bits: int | None = None
) -> HammingIndex:
    """A HammingIndex of a file that COPY wrote from the columns id and code, text or binary.

    Parameters
    ----------
    path : str or path-like
        File to read. Whether it is text or binary is recognized from its first bytes.
    kind : str, default="auto"
        Kind of the new index: "auto", "scan", "mih" or "ivf", as in `HammingIndex`.
    n_bits : int or None, default=None
        Number of bits in a code. It is needed only where the file has no codes; None takes the
        length of the codes in the file.

    Returns
    -------
    index : HammingIndex
        New index in memory with the ids and codes of the file.
    """
    name = require_file(path, "a file of COPY")
    with open(name, "rb") as file:
        is_binary = file.read(len(SIGNATURE)) == SIGNATURE
        file.seek(0)
        if is_binary:
            chunks = iter(lambda: file.read(_FILE_CHUNK), b"")
            stored_bits, blocks_read = read_binary(chunks, n_bits, name)
        else:
            stored_bits, blocks_read = read_text(file, n_bits, name)
        return gather(name, blocks_read, Note(stored_bits), kind, is_file=True)


def to_pgvector_sql(
    index: CodeSource, path: Path, table: Name, *, id_column: str = "id", code_column: str = "code"
) -> None:
    """Write ids and codes as a file of INSERT statements; COPY is several times faster.

    Parameters
    ----------
    index : HammingIndex or Collection
        Index whose ids and codes are written.
    path : str or path-like
        File to write. A file of that name is replaced at the end.
    table : str or tuple of (str, str)
        Name of the table that the statements fill, or the pair (schema, name). A dot in a string
        is part of the name.
    id_column : str, default="id"
        Name of the column with the ids. It is quoted, so any text of 1 to 63 bytes is allowed.
    code_column : str, default="code"
        Name of the column with the codes, of type bit(n). It is quoted as well.
    """
    require_source(index)
    start = f"INSERT INTO {quoted(table)} ({columns_of(id_column, code_column)}) VALUES\n"
    with write_atomically(path) as file:
        for ids, packed in blocks(index, _INSERTED):
            texts = bit_texts(BinaryCodes(packed, index.n_bits))
            rows = (b"(%d, B'%b')" % row for row in zip(ids.tolist(), texts, strict=True))
            file.write(start.encode() + b",\n".join(rows) + b";\n")


# Connections


def copy_to_postgres(
    index: CodeSource,
    connection: Any,
    table: Name,
    *,
    id_column: str = "id",
    code_column: str = "code",
) -> None:
    """Add ids and codes to an existing table, in the caller's transaction.

    Parameters
    ----------
    index : HammingIndex or Collection
        Index whose ids and codes are added. Its code length must be that of the column.
    connection : psycopg.Connection
        Open connection. Nothing is committed; that is left to the caller.
    table : str or tuple of (str, str)
        Name of the table, or the pair (schema, name). A dot in a string is part of the name.
    id_column : str, default="id"
        Name of the column with the ids. It is quoted, so any text of 1 to 63 bytes is allowed.
    code_column : str, default="code"
        Name of the column with the codes, of type bit(n). It is quoted as well.
    """
    require_source(index)
    _require_connection(connection, "copy_to_postgres")
    n_bits = _column_bits(connection, table, code_column)
    if n_bits != index.n_bits:
        raise InputError(
            f"index must have {n_bits} bits as the column {code_column!r} has, got {index.n_bits}"
        )
    columns = columns_of(id_column, code_column)
    command = f"COPY {quoted(table)} ({columns}) FROM STDIN WITH (FORMAT binary)"
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        for chunk in binary_chunks(index):
            copy.write(chunk)


def from_postgres(
    connection: Any,
    table: Name,
    kind: str = "auto",
    *,
    id_column: str = "id",
    code_column: str = "code",
) -> HammingIndex:
    """A HammingIndex of a table with a column of ids and a column bit(n), as it stands now.

    Parameters
    ----------
    connection : psycopg.Connection
        Open connection that the table is read from.
    table : str or tuple of (str, str)
        Name of the table, or the pair (schema, name). A dot in a string is part of the name.
    kind : str, default="auto"
        Kind of the new index: "auto", "scan", "mih" or "ivf", as in `HammingIndex`.
    id_column : str, default="id"
        Name of the column with the ids. It is quoted, so any text of 1 to 63 bytes is allowed.
    code_column : str, default="code"
        Name of the column with the codes, of type bit(n). It is quoted as well.

    Returns
    -------
    index : HammingIndex
        New index in memory with the ids and codes of the table.
    """
    _require_connection(connection, "from_postgres")
    n_bits = _column_bits(connection, table, code_column)
    source = f"the table {table!r}"
    command = (
        f"COPY (SELECT {quoted(id_column)}::bigint, {quoted(code_column)} "  # noqa: S608
        f"FROM {quoted(table)}) TO STDOUT WITH (FORMAT binary)"
    )
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        _, blocks_read = read_binary(_chunks(copy), n_bits, source)
        return gather(source, blocks_read, Note(n_bits), kind)


def _chunks(copy: Any) -> Iterator[bytes]:
    yield from copy


def _require_connection(connection: Any, needed_for: str) -> None:
    psycopg = _check.extra("psycopg", needed_for, EXTRA)
    if not isinstance(connection, psycopg.Connection):
        raise InputError(
            f"connection must be a psycopg.Connection, got {_check.describe(connection)}; "
            "open one with psycopg.connect()"
        )


def _column_bits(connection: Any, table: Name, column: str) -> int:
    """The length of codes in a column bit(n)."""
    row = connection.execute(
        "SELECT atttypid::regtype::text, atttypmod FROM pg_attribute "
        "WHERE attrelid = to_regclass(%s) AND attname = %s AND NOT attisdropped",
        (quoted(table), column),
    ).fetchone()
    if row is None:
        raise InputError(
            f"table {table!r} with a column {column!r} does not exist; create it with "
            "pgvector_schema()"
        )
    kind, n_bits = row
    if kind != "bit":
        raise InputError(f"table {table!r} must have {column!r} as bit(n), it is {kind}")
    return int(n_bits)
