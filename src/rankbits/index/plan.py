"""How to search: by what codes are compared, and how a pool of candidates is compared again."""

from dataclasses import dataclass
from typing import Any

from rankbits import _check
from rankbits.codes import Queries
from rankbits.errors import InputError
from rankbits.index.door import BITS, WEIGHTS, Door
from rankbits.index.reranking.base import Rerank, require_rerank, usual_pool
from rankbits.index.reranking.bits import asymmetric
from rankbits.index.reranking.vectors import SIMILARITIES, vectors
from rankbits.index.results import Matches

RERANK, NO_RERANK = ("vectors", "weights"), "none"


@dataclass(frozen=True)
class SearchPlan:
    """How to search, in words that a file can hold; `compress` recommends one.

    Parameters
    ----------
    by : "bits" or "weights"
        By what codes are compared.
    rerank : "vectors", "weights" or None
        What a pool of candidates is compared by, if anything.
    pool : int or None
        How many candidates there are, at least as many as are returned; None takes
        max(10 * k, 100).
    similarity : "cosine", "ip" or "l2"
        How vectors are compared.

    >>> SearchPlan("weights", "vectors", pool=500).sentence
    'real-valued queries, 500 candidates re-ranked by vectors (cosine)'
    """

    by: str = BITS
    rerank: str | None = None
    pool: int | None = None
    similarity: str = "cosine"

    def __post_init__(self) -> None:
        _check.choice("by", self.by, (BITS, WEIGHTS))
        _check.choice("similarity", self.similarity, SIMILARITIES)
        if self.rerank is not None:
            _check.choice("rerank", self.rerank, RERANK)
        require_rerank(self.rerank, self.pool)
        if self.pool is not None:
            _check.whole("pool", self.pool, 1)

    @property
    def sentence(self) -> str:
        """The plan in words."""
        words = {BITS: "queries as bits", WEIGHTS: "real-valued queries"}[self.by]
        if self.rerank is None:
            return words
        how = f" ({self.similarity})" if self.rerank == "vectors" else ""
        n = "candidates" if self.pool is None else f"{self.pool} candidates"
        return f"{words}, {n} re-ranked by {self.rerank}{how}"

    def changed(
        self,
        *,
        by: str | None = None,
        rerank: str | None = None,
        pool: int | None = None,
        similarity: str | None = None,
    ) -> "SearchPlan":
        """The plan with what is given in place of what it says; `rerank="none"` re-ranks nothing.

        >>> SearchPlan("weights", "vectors", pool=500).changed(rerank="none").sentence
        'real-valued queries'
        """
        is_same = rerank in (None, self.rerank)
        reranking = self.rerank if is_same else None if rerank == NO_RERANK else rerank
        return SearchPlan(
            by or self.by,
            reranking,
            self.pool if pool is None and is_same else pool,
            similarity or self.similarity,
        )

    def for_ties(self) -> "SearchPlan":
        """What is left of it where Hamming distances are asked for: complete ties, a radius."""
        return SearchPlan(similarity=self.similarity)

    def settings(self, k: int, items: Any = None) -> dict[str, Any]:
        """Arguments of `search` that do what the plan says for k items.

        `items` are the original vectors, or the path of a .npy file with them.
        """
        if self.rerank is None:
            return {"by": self.by}
        pool = usual_pool(k) if self.pool is None else max(self.pool, k)
        return {"by": self.by, "rerank": self._reranking(items), "pool": pool}

    def _reranking(self, items: Any) -> Rerank:
        if self.rerank == "weights":
            return asymmetric()
        if items is None:
            raise InputError("items must be given to a plan that re-ranks by vectors")
        return vectors(items, similarity=self.similarity)

    def search(
        self, door: Door, queries: Queries, k: int, items: Any = None, **how: Any
    ) -> Matches:
        """Search a door by this plan; `how` are more arguments of its `search`."""
        return door.search(queries, k, **self.settings(k, items), **how)
