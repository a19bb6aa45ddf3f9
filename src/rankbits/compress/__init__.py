"""Compression: embeddings in, codes with a known loss out.

    compressed = rankbits.compress.compress("items.npy", "queries.npy", out="compressed")
    compressed.recommendation["sentence"]
    distances, ids = compressed.search(queries, k=10)

Every candidate is measured on the queries at hand, and what is printed about the recommended one
comes from queries that its choice did not see.
"""

from rankbits.compress._compressed import Compressed, load
from rankbits.compress._drift import check
from rankbits.compress._run import compress

__all__ = ["Compressed", "check", "compress", "load"]
