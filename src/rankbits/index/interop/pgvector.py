"""pgvector: codes in PostgreSQL as bit(n), by files for COPY, by SQL, or over a connection.

Names of tables and columns are quoted, so any name is a name and nothing else. A name in two parts
is a tuple, ("schema", "table"): a dot in a string is a character like others.
"""

from collections.abc import Iterator
from typing import Any

from rankbits import _check
from rankbits._files import require_file, write_atomically
from rankbits.codes import MAX_BITS, BinaryCodes
from rankbits.codes.note import Note
from rankbits.errors import InputError
from rankbits.index import inputs
from rankbits.index.hamming import HammingIndex
from rankbits.index.interop.blocks import (
    EXTRA,
    CodeSource,
    Path,
    blocks,
    gather,
    require_source,
)
from rankbits.index.interop.postgres_copy import (
    SIGNATURE,
    binary_chunks,
    bit_texts,
    read_binary,
    read_text,
    text_chunks,
)

Name = str | tuple[str, str]
_MAX_NAME = 63  # bytes; PostgreSQL cuts longer names in silence
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
    start = f"INSERT INTO {_quoted(table)} ({_columns(id_column, code_column)}) VALUES\n"
    with write_atomically(path) as file:
        for ids, packed in blocks(index, _INSERTED):
            texts = bit_texts(BinaryCodes(packed, index.n_bits))
            rows = (b"(%d, B'%b')" % row for row in zip(ids.tolist(), texts, strict=True))
            file.write(start.encode() + b",\n".join(rows) + b";\n")


# SQL


def pgvector_schema(
    table: Name,
    n_bits: int,
    index: str | None = "hnsw",
    *,
    id_column: str = "id",
    code_column: str = "code",
) -> str:
    """The SQL that creates the extension, the table and, unless None, pgvector's index on it.

    Parameters
    ----------
    table : str or tuple of (str, str)
        Name of the table to create, or the pair (schema, name). A dot in a string is part
        of the name.
    n_bits : int
        Number of bits in a code, from 1 to 4096: the n of the column's type bit(n).
    index : "hnsw" or None, default="hnsw"
        Kind of pgvector's index on the codes. None creates the table without an index, and
        queries then compare every row.
    id_column : str, default="id"
        Name of the column with the ids. It is quoted, so any text of 1 to 63 bytes is allowed.
    code_column : str, default="code"
        Name of the column with the codes, of type bit(n). It is quoted as well.

    Returns
    -------
    sql : str
        Two or three statements, one on each line.

    Examples
    --------
    >>> print(pgvector_schema("codes", 64))
    CREATE EXTENSION IF NOT EXISTS vector;
    CREATE TABLE "codes" ("id" bigint PRIMARY KEY, "code" bit(64) NOT NULL);
    CREATE INDEX ON "codes" USING hnsw ("code" bit_hamming_ops);
    """
    _check.whole("n_bits", n_bits, 1, MAX_BITS)
    name, item, code = _quoted(table), _quoted(id_column), _quoted(code_column)
    lines = [
        "CREATE EXTENSION IF NOT EXISTS vector;",
        f"CREATE TABLE {name} ({item} bigint PRIMARY KEY, {code} bit({n_bits}) NOT NULL);",
    ]
    if index is not None:
        _check.choice("index", index, ("hnsw",))
        lines.append(f"CREATE INDEX ON {name} USING hnsw ({code} bit_hamming_ops);")
    return "\n".join(lines)


def pgvector_query(
    table: Name,
    k: int,
    *,
    id_column: str = "id",
    code_column: str = "code",
    placeholder: str = "%s",
) -> str:
    """The SQL that finds the k nearest of a code in order of (distance, id), as rankbits does.

    It takes one parameter, an entry of `pgvector_bits`. With an hnsw index on the table, PostgreSQL
    may answer from it, which is approximate.

    Parameters
    ----------
    table : str or tuple of (str, str)
        Name of the table to search, or the pair (schema, name). A dot in a string is part
        of the name.
    k : int
        Number of neighbors to return, at least 1.
    id_column : str, default="id"
        Name of the column with the ids. It is quoted, so any text of 1 to 63 bytes is allowed.
    code_column : str, default="code"
        Name of the column with the codes, of type bit(n). It is quoted as well.
    placeholder : {"%s", "$1"}, default="%s"
        Text that stands for the parameter: "%s" for psycopg, "$1" for drivers that number their
        parameters.

    Returns
    -------
    sql : str
        One SELECT statement, whose rows have the id and the distance.

    Examples
    --------
    >>> print(pgvector_query("codes", 10))
    SELECT "id", "code" <~> %s AS distance FROM "codes" ORDER BY distance, "id" LIMIT 10
    """
    _check.whole("k", k, 1)
    _check.choice("placeholder", placeholder, ("%s", "$1"))
    names = [_quoted(name) for name in (table, id_column, code_column)]
    if placeholder == "%s":  # drivers that take %s want other percent signs doubled
        names = [name.replace("%", "%%") for name in names]
    name, item, code = names
    return (
        f"SELECT {item}, {code} <~> {placeholder} AS distance FROM {name} "  # noqa: S608
        f"ORDER BY distance, {item} LIMIT {k}"
    )


def pgvector_bits(codes: Any, n_bits: int | None = None) -> list[str]:
    """Codes as PostgreSQL writes bit strings, for parameters of queries.

    Parameters
    ----------
    codes : BinaryCodes or ndarray of uint8, shape (n, ceil(n_bits / 8))
        Codes to convert, either BinaryCodes or packed bytes.
    n_bits : int or None, default=None
        Number of bits in a code. It must be given with packed bytes; None takes that of
        BinaryCodes.

    Returns
    -------
    texts : list of str
        One text for each code, with a digit 0 or 1 for each bit.

    Examples
    --------
    >>> pgvector_bits(BinaryCodes.from_bits([[1, 0, 1], [0, 0, 1]]))
    ['101', '001']
    """
    if n_bits is None and not isinstance(codes, BinaryCodes):
        raise InputError("n_bits must be given with packed bytes; BinaryCodes know it themselves")
    checked = inputs.codes_of("codes", codes, codes.n_bits if n_bits is None else n_bits)
    return [text.decode() for text in bit_texts(checked)]


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
    columns = _columns(id_column, code_column)
    command = f"COPY {_quoted(table)} ({columns}) FROM STDIN WITH (FORMAT binary)"
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
        f"COPY (SELECT {_quoted(id_column)}::bigint, {_quoted(code_column)} "  # noqa: S608
        f"FROM {_quoted(table)}) TO STDOUT WITH (FORMAT binary)"
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
        (_quoted(table), column),
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


def _columns(*names: str) -> str:
    return ", ".join(map(_quoted, names))


def _quoted(name: Name) -> str:
    """A name as SQL writes it, whatever is in it."""
    parts = name if isinstance(name, tuple) else (name,)
    for part in parts:
        if not isinstance(part, str) or not part or "\0" in part:
            raise InputError(f"names in SQL must be text that is not empty, got {part!r}")
        if len(part.encode()) > _MAX_NAME:
            raise InputError(f"names in SQL must have at most {_MAX_NAME} bytes, got {part!r}")
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
