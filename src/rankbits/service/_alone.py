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
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import HammingIndex, Ragged
from rankbits.index.results import of_table, stacked
from rankbits.service._bodies import Given
from rankbits.service._parts import Parts
from rankbits.service._pieces import candidates_at_once, queries_at_once
from rankbits.service._queries import Queries

_FEW_ALLOWED = 1000


@dataclass(frozen=True, eq=False)
class Piece:
    """Items of some queries: a table if there are no offsets, else behind one another."""

    offsets: np.ndarray | None
    values: np.ndarray
    ids: np.ndarray


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
    def column(self) -> str:
        """What the values of items are."""
        is_scored = self.given["query"] == "real" or self.given["rescore"] is not None
        return "scores" if is_scored else "distances"

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
        groups = (self.queries.part(slice(start, start + n_queries)) for start in starts)
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

    async def search(self) -> Piece:
        """The items of all queries."""
        kind = "real" if self.given["query"] == "real" else "bits"
        n_queries = queries_at_once(kind, self._n_bytes, self.k or 1)
        if self.pool:
            n_queries = min(n_queries, candidates_at_once(self.pool))
        pieces: list[Piece] = await self.in_pieces(self._search, n_queries)
        if len(pieces) == 1:
            return pieces[0]
        if pieces[0].offsets is not None:
            ragged = [Ragged(p.offsets, p.values, p.ids) for p in pieces if p.offsets is not None]
            return Piece(*stacked(ragged))
        values = np.concatenate([piece.values for piece in pieces])
        return Piece(None, values, np.concatenate([piece.ids for piece in pieces]))

    @property
    def _n_bytes(self) -> int:
        return len(self.moment) * self.parts.store.n_bytes

    def _search(self, queries: Queries) -> Piece:
        """The items of some queries."""
        given, moment = self.given, self.moment
        how: dict[str, Any] = {"allowed": self.allowed, "n_threads": 1}
        if given["query"] == "real":
            correction = self.parts.encoder.correction(moment.has_factors)
            k = int(self.k or 1)
            scores, ids = moment.search_real(queries.weights, k, correction=correction, **how)
            return Piece(None, scores, ids)
        codes = require_codes(queries)
        if given["rescore"] is not None:
            how |= {"rescore": self._rescore(queries), "pool": given["pool"]}
            return Piece(None, *moment.search(codes, int(self.k or 1), given["ties"], **how))
        if self.k is None:
            return Piece(*moment.within(codes, given["radius"], **how))
        answer = moment.search(codes, self.k, given["ties"], **how)
        if given["radius"] is not None:
            ragged = answer if isinstance(answer, Ragged) else of_table(*answer)
            return Piece(*_within(ragged, given["radius"]))
        return Piece(*answer) if isinstance(answer, Ragged) else Piece(None, *answer)

    def _rescore(self, queries: Queries) -> Any:
        given = self.given
        if given["rescore"] == "weighted_bits":
            return index.weighted_bits(np.asarray(given["weights"], np.float64))
        if given["rescore"] == "asymmetric":
            return index.asymmetric(queries.weights)
        return index.vectors(self.parts.vectors, queries.rows, given["metric"])


def prepare(parts: Parts, given: Given, queries: Queries, k: int | None) -> LoneSearch:
    """A search at this moment."""
    moment, pool = parts.store.moment(), 0
    if given["rescore"] is not None:
        pool = min(given["pool"] or max(10 * (k or 1), 100), max(1, len(moment)))
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


def _within(answer: Ragged, radius: int) -> Ragged:
    """What is no farther than a radius."""
    is_near = answer.distances <= radius
    counts = np.bincount(answer.queries()[is_near], minlength=len(answer.counts))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Ragged(offsets, answer.distances[is_near], answer.ids[is_near])


def require_codes(queries: Queries) -> BinaryCodes:
    """Codes of queries, which were resolved."""
    if queries.codes is None:
        raise LookupError("codes of the queries were not resolved")
    return queries.codes
