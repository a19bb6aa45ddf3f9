"""One search for everything that has codes: in memory, on disk, in tables, in shards.

A door gives its items at one moment, which says what is nearest by code. All else is here, once:
what a search may ask for, how candidates are compared again, in what order answers come.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from rankbits import _check, _native
from rankbits.codes import BinaryCodes, Queries
from rankbits.codes.queries import queries_of
from rankbits.errors import InputError
from rankbits.index import inputs
from rankbits.index.reranking.base import Candidates, Rerank, pool_size, require_rerank, reranked
from rankbits.index.reranking.bits import asymmetric
from rankbits.index.results import Matches

BITS, WEIGHTS = "bits", "weights"  # by what codes are compared
Codes = BinaryCodes | np.ndarray


class CodeRequest(NamedTuple):
    """What is asked of codes at one moment: the part of a search that all doors do themselves.

    Attributes
    ----------
    tables : the queries, once for each table of codes
    by : "bits" or "weights"
    k : how many items, at least 1; None for all within the radius
    radius : the largest distance, None for any; by bits only
    is_complete : whether all ties of the k-th are returned; by bits only
    allowed : ids that may be returned, a mask of all ids, or None
    n_threads : threads, None for those of the door
    options : of the kind of index, by bits only
    """

    tables: Sequence[Queries]
    by: str
    k: int | None
    radius: int | None
    is_complete: bool
    allowed: Any
    n_threads: int | None
    options: dict[str, Any]


class Moment(ABC):
    """The items of a door as they stand.

    Attributes
    ----------
    codes_of : for each table of codes, what gives the codes of ids
    """

    codes_of: Sequence[Callable[[np.ndarray], BinaryCodes]]

    @abstractmethod
    def __len__(self) -> int:
        """Number of items."""

    @abstractmethod
    def nearest(self, request: CodeRequest) -> Matches:
        """What is nearest by code: tables, with offsets where ties or a radius decide how many."""


class Door(ABC):
    """Codes by id that can be searched."""

    @property
    @abstractmethod
    def n_bits(self) -> int:
        """Bits in a code."""

    @property
    @abstractmethod
    def has_factors(self) -> bool:
        """Whether items have two bytes of factors beside their codes."""

    @property
    @abstractmethod
    def n_threads(self) -> int | None:
        """Threads of a search, None for as many as there are."""

    @abstractmethod
    def _look(self, *sources: Any) -> AbstractContextManager[Moment]:
        """The items as they stand, for a block in which they and the sources must not change."""

    def _tables_of(self, queries: Any) -> Sequence[Queries]:
        """The queries of each table of codes."""
        return [queries_of(queries, self.n_bits)]

    def search(
        self,
        queries: Any,
        k: int | None = None,
        ties: str = "id",
        *,
        by: str | None = None,
        within: int | None = None,
        allowed: Any = None,
        rerank: Rerank | None = None,
        pool: int | None = None,
        n_threads: int | None = None,
        **options: Any,
    ) -> Matches:
        """The nearest items of each query, in order of (distance, id).

        Parameters
        ----------
        queries : Queries, BinaryCodes or packed uint8
            `hasher.as_queries(X)` has all forms that a model gives. Codes alone are compared as
            bits. An index of several tables takes a list with the queries of each.
        k : int or None, 1 or more
            More than there are items is as many as there are. None with `within` returns all.
        ties : "id" or "complete"
            Which items that are as far as the k-th to return: those of lowest id, or all. By bits.
        by : "bits", "weights" or None
            By Hamming distance, or by the largest products of weights and codes as -1 and +1, the
            distance being minus the product. None takes bits where the queries have them.
        within : int or None
            The largest Hamming distance to return.
        allowed : ids that may be returned, or a mask with an entry for each of `ids`
        rerank : `weighted_bits`, `asymmetric` or `vectors`: a finer distance for a pool of items
        pool : int or None, how many items to collect by code; None takes max(10 * k, 100)
            With `ties="complete"` also all that are as far as the last of them. `asymmetric` scans
            all items of an index that has no more than 256 times as many, if no pool is given.
        n_threads : threads of this search
        options : options of the kind of index for this search, such as n_probes of "ivf"

        Returns
        -------
        matches : Matches
            `distances, ids = ...` unpacks tables of shape (queries, k): int32 by bits, float32 by
            weights and with `rerank`. Where fewer items may be returned, places hold 2147483647 or
            infinity, and -1. With `ties="complete"`, or without k, `offsets, distances, ids = ...`.
        """
        is_complete = _check.choice("ties", ties, ("id", "complete")) == "complete"
        tables = self._tables_of(queries)
        by = _comparison(by, tables)
        k = None if k is None and within is not None else inputs.how_many(k)
        radius = None if within is None else _check.whole("within", within, 0)
        if by == WEIGHTS and (is_complete or radius is not None):
            raise InputError("by='weights' must come without ties='complete' and without within")
        require_rerank(rerank, pool)
        if rerank is not None and (k is None or radius is not None):
            raise InputError("rerank must come with k and without within")
        request = CodeRequest(tables, by, k, radius, is_complete, allowed, n_threads, dict(options))
        with self._look(*_forms(tables), allowed) as moment:
            if rerank is None:
                return moment.nearest(request)
            return self._rerank(moment, request, rerank, pool)

    def _rerank(
        self, moment: Moment, request: CodeRequest, rerank: Rerank, pool: int | None
    ) -> Matches:
        """The nearest of a pool by a finer distance."""
        tables, n, k = request.tables, len(moment), request.k or 1
        n_scored = pool_size(rerank, pool, k, n)
        for queries in tables:
            rerank.require(queries, self.n_bits)
        if isinstance(rerank, asymmetric) and n_scored >= n and all(map(rerank.can_scan, tables)):
            by_weights = [Queries(weights=rerank.logits_of(queries)) for queries in tables]
            return moment.nearest(
                request._replace(tables=by_weights, by=WEIGHTS, is_complete=False, options={})
            )
        nearest = moment.nearest(request._replace(k=max(1, min(n_scored, n)))).ragged()
        threads = _native.threads(
            self.n_threads if request.n_threads is None else request.n_threads
        )
        candidates = [
            Candidates(queries, nearest, codes_of, threads)
            for queries, codes_of in zip(tables, moment.codes_of, strict=True)
        ]
        return reranked(candidates, rerank, min(k, n))

    def within(
        self,
        queries: Any,
        radius: int,
        *,
        allowed: Any = None,
        n_threads: int | None = None,
        **options: Any,
    ) -> Matches:
        """Every item at distance `radius` or less of each query, in order of (distance, id).

        The same as `search(queries, within=radius)`, which says more; it unpacks as
        `offsets, distances, ids`.
        """
        radius = _check.whole("radius", radius, 0)
        return self.search(
            queries, by=BITS, within=radius, allowed=allowed, n_threads=n_threads, **options
        )

    def search_real(
        self,
        weights: Any,
        k: int,
        *,
        allowed: Any = None,
        correction: Any = None,
        n_threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k items with the largest inner product of a query's weights and their codes.

        The same as `search(Queries(weights=weights), k)`, with products in place of distances.
        Codes count as -1 and +1. The result is exact for every kind of index, since every kind
        scans for it: neither buckets of mih nor lists of ivf say which items have large products.

        Parameters
        ----------
        weights : array of shape (queries, n_bits) or (queries, 16 * ceil(n_bits / 4))
            Real-valued queries, such as `hasher.project_queries(X)`: how much each bit matters, and
            its sign. Or 16 numbers for every four bits, the one of their value being added. An
            index of several tables takes a list with those of each.
        k : int, 1 or more
            More than there are items is as many as there are.
        allowed : ids, or a mask with an entry for each of `ids`, default=None
            The items that may be returned; None for all.
        correction : array of shape (3, 256) or None, default=None
            For an index with factors, such as `hasher.correction()` of `rabitq`: the product of an
            item is multiplied by correction[0, its first byte] and correction[1, its second byte],
            which are 0 or more, and correction[2, its first byte] is added.
        n_threads : int or None, default=None
            Threads of this search; None for those of the index.

        Returns
        -------
        scores, ids : float32 and int64 arrays (queries, k)
            Largest score first, equal ones in order of id. Where fewer than k items may be
            returned, places are filled with minus infinity and -1.
        """
        if correction is not None and not self.has_factors:
            raise InputError("correction must come with an index that was made with factors=True")
        queries = self._weighted(weights, correction)
        matches = self.search(queries, k, by=WEIGHTS, allowed=allowed, n_threads=n_threads)
        return 0.0 - matches.distances, matches.ids

    def _weighted(self, weights: Any, correction: Any) -> Any:
        """Queries of weights, as `search` takes them."""
        return Queries(weights=weights, correction=correction)


def _comparison(by: str | None, tables: Sequence[Queries]) -> str:
    """By what codes are compared, which all queries must have."""
    if by is None:
        by = BITS if all(queries.bits is not None for queries in tables) else WEIGHTS
    _check.choice("by", by, (BITS, WEIGHTS))
    for queries in tables:
        if getattr(queries, by) is None:
            raise InputError(
                f"queries must have {by} to be compared by {by}; hasher.as_queries(X) has all that "
                "its model gives"
            )
    return by


def _forms(tables: Sequence[Queries]) -> list[Any]:
    """The arrays of queries, which may be mapped."""
    return [form for queries in tables for form in (queries.bits, queries.weights, queries.vectors)]
