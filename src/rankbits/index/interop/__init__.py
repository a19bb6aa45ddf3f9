"""Exchange of codes with other libraries and stores.

- faiss: `to_faiss`, `from_faiss`
- usearch: `to_usearch`, `from_usearch`
- NumPy: `to_npz`, `from_npz`
- Parquet: `to_parquet`, `from_parquet`
- LanceDB: `to_lance`, `from_lance`
- PostgreSQL with pgvector: `to_pgvector_copy`, `from_pgvector_copy`, `to_pgvector_sql`,
  `copy_to_postgres`, `from_postgres`, `pgvector_schema`, `pgvector_query`,
  `pgvector_two_stage_query`, `pgvector_bits`, `pgvector_vectors`

Each partner's package is imported when it is first needed: pip install 'rankbits[interop]'.
"""

from rankbits.index.interop.faiss import from_faiss, to_faiss
from rankbits.index.interop.lance import from_lance, to_lance
from rankbits.index.interop.npz import from_npz, to_npz
from rankbits.index.interop.parquet import from_parquet, to_parquet
from rankbits.index.interop.pgvector import (
    copy_to_postgres,
    from_pgvector_copy,
    from_postgres,
    to_pgvector_copy,
    to_pgvector_sql,
)
from rankbits.index.interop.pgvector_sql import (
    pgvector_bits,
    pgvector_query,
    pgvector_schema,
    pgvector_two_stage_query,
    pgvector_vectors,
)
from rankbits.index.interop.usearch import from_usearch, to_usearch

__all__ = [
    "copy_to_postgres",
    "from_faiss",
    "from_lance",
    "from_npz",
    "from_parquet",
    "from_pgvector_copy",
    "from_postgres",
    "from_usearch",
    "pgvector_bits",
    "pgvector_query",
    "pgvector_schema",
    "pgvector_two_stage_query",
    "pgvector_vectors",
    "to_faiss",
    "to_lance",
    "to_npz",
    "to_parquet",
    "to_pgvector_copy",
    "to_pgvector_sql",
    "to_usearch",
]
