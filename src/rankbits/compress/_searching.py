"""Searching codes: vectors in, the nearest items out, by a plan."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits.index import HammingIndex, Matches, SearchPlan
from rankbits.methods.base import BaseHasher

QUERY_KINDS = ("bits", "real")  # as methods and results call them
_COMPARISONS = {"bits": "bits", "real": "weights"}


def plan_of(kind: str, pool: int | None, similarity: str) -> SearchPlan:
    """The plan of a kind of query, with a pool that is re-ranked by vectors, if any is."""
    rerank = None if pool is None else "vectors"
    return SearchPlan(_COMPARISONS[kind], rerank, pool, similarity)


@dataclass(frozen=True, eq=False)
class CodeSearch:
    """An index of codes with the model that encodes queries, and the vectors of the items.

    Attributes
    ----------
    hasher : BaseHasher
        The fitted method.
    index : HammingIndex
        Codes of all items, whose ids are the rows of `items`.
    items : ndarray of shape (N, d) or None
        The original vectors, perhaps mapped; None if nothing is re-ranked.
    """

    hasher: BaseHasher
    index: HammingIndex
    items: np.ndarray | None

    def search(self, vectors: np.ndarray, k: int, plan: SearchPlan, **how: Any) -> Matches:
        """The k nearest items of each vector; `how` are more arguments of `HammingIndex.search`."""
        return plan.search(self.index, self.hasher.as_queries(vectors), k, self.items, **how)


def build_search(hasher: BaseHasher, items: np.ndarray, n_threads: int | None = None) -> CodeSearch:
    """Encode all items, block by block, and index their codes."""
    codes = hasher.encode(items)
    index = HammingIndex(codes.n_bits, kind="scan", n_threads=n_threads)
    index.add(codes)
    return CodeSearch(hasher, index, items)
