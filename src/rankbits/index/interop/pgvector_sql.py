"""pgvector: the SQL that creates tables of codes and searches them, and the texts it takes.

Names of tables and columns are quoted, so any name is a name and nothing else. A name in two parts
is a tuple, ("schema", "table"): a dot in a string is a character like others.
"""

from typing import Any

import numpy as np

from rankbits import _check
from rankbits.codes import MAX_BITS, BinaryCodes
from rankbits.errors import InputError
from rankbits.index import inputs
from rankbits.index.interop.postgres_copy import bit_texts

Name = str | tuple[str, str]
OPERATORS = {"cosine": "<=>", "ip": "<#>", "l2": "<->"}  # of pgvector, the smaller the nearer
_MAX_NAME = 63  # bytes; PostgreSQL cuts longer names in silence


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
    name, item, code = quoted(table), quoted(id_column), quoted(code_column)
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
    name, item, code = _names(placeholder, table, id_column, code_column)
    return (
        f"SELECT {item}, {code} <~> {placeholder} AS distance FROM {name} "  # noqa: S608
        f"ORDER BY distance, {item} LIMIT {k}"
    )


def pgvector_two_stage_query(
    table: Name,
    k: int,
    pool: int,
    metric: str = "cosine",
    *,
    id_column: str = "id",
    code_column: str = "code",
    vector_column: str = "embedding",
    placeholder: str = "%s",
) -> str:
    """The SQL that takes the items nearest by their codes and sorts them by their float vectors.

    It takes two parameters, an entry of `pgvector_bits` as the code and one of `pgvector_vectors`
    as the vector of the query.

    Parameters
    ----------
    table : str or tuple of (str, str)
        Name of the table to search, or the pair (schema, name). A dot in a string is part
        of the name.
    k : int
        Number of neighbors to return, at least 1.
    pool : int
        Number of items that are chosen by their codes, at least k.
    metric : {"cosine", "ip", "l2"}, default="cosine"
        What the float vectors are compared by.
    id_column : str, default="id"
        Name of the column with the ids. It is quoted, so any text of 1 to 63 bytes is allowed.
    code_column : str, default="code"
        Name of the column with the codes, of type bit(n). It is quoted as well.
    vector_column : str, default="embedding"
        Name of the column with the float vectors, of type vector or halfvec. It is quoted as well.
    placeholder : {"%s", "$1"}, default="%s"
        How parameters are written: "%s" for psycopg, by the names %(code)s and %(vector)s; "$1" for
        drivers that number them, $1 the code and $2 the vector.

    Returns
    -------
    sql : str
        One SELECT statement, whose rows have the id and the distance of the float vectors.

    Examples
    --------
    >>> print(pgvector_two_stage_query("items", 10, 100, placeholder="$1"))
    SELECT "id", "embedding" <=> $2 AS distance FROM (
      SELECT "id", "embedding" FROM "items" ORDER BY "code" <~> $1, "id" LIMIT 100
    ) AS candidates ORDER BY distance, "id" LIMIT 10
    """
    _check.whole("k", k, 1)
    _check.whole("pool", pool, k)
    operator = OPERATORS[_check.choice("metric", metric, tuple(OPERATORS))]
    names = _names(placeholder, table, id_column, code_column, vector_column)
    name, item, code, vector = names
    code_sign, vector_sign = ("%(code)s", "%(vector)s") if placeholder == "%s" else ("$1", "$2")
    return (
        f"SELECT {item}, {vector} {operator} {vector_sign} AS distance FROM (\n"  # noqa: S608
        f"  SELECT {item}, {vector} FROM {name} ORDER BY {code} <~> {code_sign}, {item} "
        f"LIMIT {pool}\n) AS candidates ORDER BY distance, {item} LIMIT {k}"
    )


def _names(placeholder: str, *names: Name) -> list[str]:
    """Names as SQL writes them; drivers that take %s want other percent signs doubled."""
    _check.choice("placeholder", placeholder, ("%s", "$1"))
    texts = [quoted(name) for name in names]
    return [text.replace("%", "%%") for text in texts] if placeholder == "%s" else texts


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


def pgvector_vectors(rows: Any) -> list[str]:
    """Float vectors as pgvector writes them, for parameters of queries.

    Parameters
    ----------
    rows : array-like of shape (n, features)
        Finite real numbers. They are rounded to float32, which is what pgvector stores.

    Returns
    -------
    texts : list of str
        One text for each row.

    Examples
    --------
    >>> pgvector_vectors([[0.5, -1.0]])
    ['[0.5,-1.0]']
    """
    table = _check.array_2d("rows", rows, columns="features")
    if table.dtype.kind not in "biuf":
        raise InputError(f"rows must be real numbers, got {_check.describe(table)}")
    numbers = table.astype(np.float32)
    _check.finite("rows", numbers)
    return ["[" + ",".join(map(str, row)) + "]" for row in numbers]


def columns_of(*names: str) -> str:
    """Names of columns as a list in SQL."""
    return ", ".join(map(quoted, names))


def quoted(name: Name) -> str:
    """A name as SQL writes it, whatever is in it."""
    parts = name if isinstance(name, tuple) else (name,)
    for part in parts:
        if not isinstance(part, str) or not part or "\0" in part:
            raise InputError(f"names in SQL must be text that is not empty, got {part!r}")
        if len(part.encode()) > _MAX_NAME:
            raise InputError(f"names in SQL must have at most {_MAX_NAME} bytes, got {part!r}")
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
