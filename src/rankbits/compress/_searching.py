"""Searching codes: queries as bits or as real weights, then perhaps the original vectors."""

from typing import Any

import numpy as np

from rankbits._mapped import unchanged
from rankbits.compress._lists import NO_ITEM, exact_distances, rerank
from rankbits.histogram import VectorDistances
from rankbits.index import HammingIndex

QUERY_KINDS = ("bits", "real")


class CodeSearch:
    """An index of codes with the model that encodes queries, and the vectors of the items.

    Parameters
    ----------
    hasher : BaseHasher
        The fitted method.
    index : HammingIndex
        Codes of all items, whose ids are the rows of `items`.
    items : ndarray of shape (N, d) or None
        The original vectors, perhaps mapped; None if nothing is re-ranked.
    similarity : {"cosine", "ip", "l2"}
        What the original vectors are ranked by.
    """

    def __init__(
        self, hasher: Any, index: HammingIndex, items: np.ndarray | None, similarity: str
    ) -> None:
        self.hasher, self.index, self.items, self.similarity = hasher, index, items, similarity

    def nearest(
        self, queries: np.ndarray, kind: str, k: int, n_threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distances, smaller is nearer, and ids of the k nearest items by code."""
        if kind == "real":
            weights = self.hasher.project_queries(queries)
            scores, ids = self.index.search_real(weights, k, n_threads=n_threads)
            return -scores.astype(np.float64), ids
        codes = self.hasher.encode_queries(queries)
        distances, ids = self.index.search(codes, k, n_threads=n_threads)
        return np.where(ids == NO_ITEM, np.inf, distances), ids

    def search(
        self,
        queries: np.ndarray,
        k: int,
        kind: str = "real",
        pool: int | None = None,
        n_threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distances and ids of the k nearest items, of a pool re-ranked by vectors if given."""
        if pool is None or self.items is None:
            return self.nearest(queries, kind, k, n_threads)
        _, ids = self.nearest(queries, kind, max(pool, k), n_threads)
        with unchanged(queries, self.items):
            exact = exact_distances(VectorDistances(queries, self.items, self.similarity), ids)
        exact, ids = rerank(exact, ids, max(pool, k))
        return exact[:, :k], ids[:, :k]


def build_search(
    hasher: Any, items: np.ndarray, similarity: str, n_threads: int | None = None
) -> CodeSearch:
    """Encode all items, block by block, and index their codes."""
    codes = hasher.encode(items)
    index = HammingIndex(codes.n_bits, kind="scan", n_threads=n_threads)
    index.add(codes)
    return CodeSearch(hasher, index, items, similarity)
