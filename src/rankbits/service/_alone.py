"""Searches that are made by themselves, at one moment of the collection, in pieces.

What needs several looks at the collection (counts beside items, results whose number nobody knows
before) takes them at one moment. Each look is cut into groups of queries that take milliseconds.
Between them other requests have their turn, and a request that was given up ends.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits import index
from rankbits.codes import BinaryCodes, Queries
from rankbits.errors import InputError
from rankbits.index import HammingIndex, Matches, Rerank
from rankbits.index.reranking.base import usual_pool
from rankbits.index.results import together
from rankbits.service._bodies import Given
from rankbits.service._parts import Parts
from rankbits.service._pieces import candidates_at_once, queries_at_once

_FEW_ALLOWED = 1000


@dataclass(frozen=True, eq=False)
class LoneSearch:
    """A search, and the moment at which it looks at the collection.

    Attributes
    ----------
    parts, given : the server and the request
    moment : the collection at one moment
    queries, k : what to search for
    pool : how many candidates of each query are scored, 0 if none are
    allowed : ids that may be returned, or a mask of all ids, or None
    """

    parts: Parts
    given: Given
    moment: HammingIndex
    queries: Queries
    k: int | None
    pool: int
    allowed: np.ndarray | None

    @property
    def is_counted(self) -> bool:
        """Whether items are counted by distance before they are collected."""
        return self.is_ragged or "histogram" in self.given["include"]

    @property
    def is_ragged(self) -> bool:
        """Whether the number of items follows from their distances."""
        return self.given["radius"] is not None or self.given["ties"] == "complete"

    async def in_pieces(self, look: Callable[[Queries], Any], n_queries: int) -> list[Any]:
        """What a look gives for all queries, so many at a time."""
        starts = range(0, len(self.queries), n_queries)
        groups = (self.queries[start : start + n_queries] for start in starts)
        answers = []
        for group in groups:
            await self.given.require_client()
            answers.append(await self.parts.batcher.run_aside(look, group))
        return answers

    async def count(self, summarize: Callable[[np.ndarray], Any]) -> list[Any]:
        """What a function says about the items at each distance of some queries, for all."""

        def look(queries: Queries) -> Any:
            codes = require_codes(queries)
            return summarize(self.moment.tie_counts(codes, allowed=self.allowed, n_threads=1))

        return await self.in_pieces(look, queries_at_once("counts", self._n_bytes))

    async def search(self) -> Matches:
        """The items of all queries."""
        n_queries = queries_at_once(self.given["by"], self._n_bytes, self.k or 1)
        if self.pool:
            n_queries = min(n_queries, candidates_at_once(self.pool))
        pieces: list[Matches] = await self.in_pieces(self._search, n_queries)
        return pieces[0] if len(pieces) == 1 else together(pieces)

    @property
    def _n_bytes(self) -> int:
        return len(self.moment) * self.parts.store.n_bytes

    def _search(self, queries: Queries) -> Matches:
        """The items of some queries."""
        given = self.given
        return self.moment.search(
            queries,
            self.k,
            given["ties"],
            by=given["by"],
            within=given["radius"],
            allowed=self.allowed,
            rerank=self._rerank(),
            pool=given["pool"],
            n_threads=1,
        )

    def _rerank(self) -> Rerank | None:
        given = self.given
        if given["rerank"] == "weighted_bits":
            return index.weighted_bits(np.asarray(given["weights"], np.float64))
        if given["rerank"] == "weights":
            return index.asymmetric()
        if given["rerank"] == "vectors":
            return index.vectors(self.parts.vectors, similarity=given["similarity"])
        return None


def prepare(parts: Parts, given: Given, queries: Queries, k: int | None) -> LoneSearch:
    """A search at this moment."""
    moment, pool = parts.store.moment(), 0
    if given["rerank"] is not None:
        pool = min(given["pool"] or usual_pool(k or 1), max(1, len(moment)))
    allowed = _allowed(parts, given)
    if allowed is not None and len(allowed) > _FEW_ALLOWED:
        allowed = _mask(moment.ids, allowed)  # ids would be looked up for each piece
    return LoneSearch(parts, given, moment, queries, k, pool, allowed)


def _allowed(parts: Parts, given: Mapping[str, Any]) -> np.ndarray | None:
    """Ids that may be returned; None for all."""
    allowed = None if given["allowed"] is None else np.asarray(given["allowed"], np.int64)
    if given["labels"] is None:
        return allowed
    if parts.items is None:
        raise InputError("labels must go with a table of items, which this server has none of")
    labelled = parts.items.labelled(given["labels"])
    return labelled if allowed is None else np.intersect1d(labelled, allowed)


def _mask(ids: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Which of the ids, which ascend, are allowed."""
    mask = np.zeros(len(ids), bool)
    places = np.searchsorted(ids, allowed)
    places[places == len(ids)] = 0
    mask[places[ids[places] == allowed] if len(ids) else places[:0]] = True
    return mask


def require_codes(queries: Queries) -> BinaryCodes:
    """Codes of queries, which were resolved."""
    if queries.bits is None:
        raise LookupError("codes of the queries were not resolved")
    return queries.bits
