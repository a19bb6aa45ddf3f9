"""pgvector: a compressed folder beside the float vectors of a table, as a script of SQL.

The codes become a column of the table that has the vectors already, and a query has two stages:
the items nearest by Hamming distance, then these by their float vectors. PostgreSQL compares bits,
so queries are `hasher.encode_queries`, whatever kind of query the folder recommends.
"""

import json
import os
from pathlib import Path
from typing import Any

from rankbits import _check
from rankbits.errors import FileFormatError, InputError
from rankbits.index import HammingIndex
from rankbits.index.interop import pgvector_two_stage_query, to_pgvector_copy
from rankbits.index.interop.pgvector_sql import Name, quoted
from rankbits.methods import load

__all__ = ["two_stage_script"]

DEFAULT_POOL = 100
_MOST_SEARCHED = 1000  # the largest hnsw.ef_search
_SCRIPT = """\
-- Codes of {n_bits} bits beside the vectors of the table.
CREATE EXTENSION IF NOT EXISTS vector;
ALTER TABLE {table} ADD COLUMN {code} bit({n_bits});
CREATE TEMPORARY TABLE new_codes (id bigint PRIMARY KEY, code bit({n_bits}) NOT NULL);
\\copy new_codes (id, code) from '{file}' with (format binary)
UPDATE {table} SET {code} = new_codes.code FROM new_codes WHERE {table}.{item} = new_codes.id;

-- An index is optional and approximate; without it every code is compared.
CREATE INDEX ON {table} USING hnsw ({code} bit_hamming_ops);
SET hnsw.ef_search = {n_searched};

-- $1 is the code of a query, $2 its vector: {pool} items by their codes, {k} of them by vectors.
PREPARE search (bit({n_bits}), vector) AS
{query};
"""


def two_stage_script(
    folder: str | os.PathLike[str],
    table: Name = "items",
    k: int = 10,
    pool: int | None = None,
    metric: str = "cosine",
    *,
    id_column: str = "id",
    code_column: str = "code",
    vector_column: str = "embedding",
    copy_file: str | os.PathLike[str] | None = None,
) -> str:
    """The SQL that adds the codes of a folder to a table of vectors and searches both.

    Parameters
    ----------
    folder : str or path-like
        What `rankbits compress` wrote, or an index alone, as `rankbits index build` writes it.
    table : str or tuple of (str, str), default="items"
        Name of the table that has the float vectors, or the pair (schema, name).
    k : int, default=10
        Number of neighbors that the query returns.
    pool : int or None, default=None
        Number of items that are chosen by their codes. None takes what the folder recommends, and
        100 where it recommends no re-ranking; at least k.
    metric : {"cosine", "ip", "l2"}, default="cosine"
        What the float vectors are compared by.
    id_column, code_column, vector_column : str, default="id", "code" and "embedding"
        Names of the columns. That of the codes is added by the script.
    copy_file : str, path-like or None, default=None
        File of ids and codes that is written here and that psql copies from. None writes nothing,
        and the script names codes.copy.

    Returns
    -------
    sql : str
        Statements for psql, with comments, ending with the query.
    """
    _check.whole("k", k, 1)
    _require_query_bits(folder)
    index = HammingIndex.load(_index_folder(folder))
    n_pool = _recommended_pool(folder, k) if pool is None else _check.whole("pool", pool, k)
    columns = {
        "id_column": id_column,
        "code_column": code_column,
        "vector_column": vector_column,
    }
    query = pgvector_two_stage_query(table, k, n_pool, metric, placeholder="$1", **columns)
    if copy_file is not None:
        to_pgvector_copy(index, copy_file, binary=True)
    name, item, code = quoted(table), quoted(id_column), quoted(code_column)
    file = str(copy_file or "codes.copy").replace("'", "''")
    return _SCRIPT.format(
        n_bits=index.n_bits,
        table=name,
        item=item,
        code=code,
        file=file,
        n_searched=min(n_pool, _MOST_SEARCHED),
        pool=n_pool,
        k=k,
        query=query,
    )


def _index_folder(folder: str | os.PathLike[str]) -> Path:
    """The index in a compressed folder, or the folder itself."""
    path = Path(folder)
    if not path.is_dir():
        raise InputError(
            f"folder must be one that rankbits compress or rankbits index build wrote, there is no "
            f"{path}"
        )
    inner = path / "index"
    return inner if (path / "result.json").is_file() and inner.is_dir() else path


def _require_query_bits(folder: str | os.PathLike[str]) -> None:
    """Refuse a compressed folder whose codes mean nothing by Hamming distance."""
    model = Path(folder) / "model"
    if not model.is_dir():
        return
    hasher = load(model)
    if "bits" not in hasher.query_kinds:
        raise InputError(
            f"folder must have codes for Hamming distance, which PostgreSQL compares bits by; "
            f"those of {type(hasher).__name__} are for real-valued queries only; compress again "
            "with --method distilled or --method itq"
        )


def _recommended_pool(folder: str | os.PathLike[str], k: int) -> int:
    """The pool that result.json recommends, if there is one, and k at least."""
    path, pool = Path(folder) / "result.json", None
    if path.is_file():
        try:
            result: dict[str, Any] = json.loads(path.read_bytes())
            pool = result["recommendation"]["pool"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise FileFormatError(f"{path} is not a result of rankbits compress") from None
    return max(k, DEFAULT_POOL if pool is None else _check.whole("pool", pool, 1))
