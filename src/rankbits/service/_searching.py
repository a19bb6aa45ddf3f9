"""From a search request to its answer: the same calls that a program would make itself.

What can be joined with other requests goes through the batcher, all else is a search of its own.
Its work is compared with the limits before it begins, and again when items have been counted.
"""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.index import Matches
from rankbits.service._alone import LoneSearch, prepare, require_codes
from rankbits.service._batching import ScanRequest
from rankbits.service._bodies import Given
from rankbits.service._parts import Parts
from rankbits.service._plans import settle
from rankbits.service._problems import RequestProblem
from rankbits.service._queries import resolve
from rankbits.service._request_memory import PER_RESULT

_DEFAULT_K = 10
_FEW_RESULTS = 2000  # of an answer that reserves no memory
_CODES_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Items of all queries.

    Attributes
    ----------
    matches : the items and their distances
    query_codes : codes of the queries, None where only numbers were compared
    histogram : items at each distance of each query, or None
    item_codes : codes of all items, behind one another, or None
    """

    matches: Matches
    query_codes: BinaryCodes | None
    histogram: np.ndarray | None = None
    item_codes: BinaryCodes | None = None


@asynccontextmanager
async def finding(parts: Parts, given: Given) -> AsyncIterator[SearchResult]:
    """The answer to a request; memory for a large one is reserved until the block ends."""
    settle(parts, given)
    _require_limits(parts, given)
    needs_codes = given["by"] == "bits" or bool({"codes", "histogram"} & {*given["include"]})
    queries = await resolve(parts, given, needs_codes)
    by = given["by"]
    parts.metrics.count("rankbits_queries_total", len(queries), kind=by)
    k = given["k"] if given["k"] is not None or given["radius"] is not None else _DEFAULT_K
    n_results = len(queries) * (k or 0)
    search = None
    if not _can_be_joined(parts, given):
        search = await parts.batcher.run_aside(prepare, parts, given, queries, k)
        _require_work(parts, "candidates", len(queries), search.pool)
        n_results, histogram = await _count(search, n_results)
    _require_few_results(parts, n_results)
    n_bytes = PER_RESULT * n_results if n_results > _FEW_RESULTS and not given.has_memory else 0
    async with parts.memory.reserved(n_bytes):
        if search is not None:
            yield await _find_alone(search, histogram)
            return
        rows = require_codes(queries).packed if by == "bits" else np.asarray(queries.weights)
        distances, ids = await parts.batcher.scan(ScanRequest(by, rows, int(k or 1)))
        yield SearchResult(Matches(distances, ids), queries.bits)


def _require_limits(parts: Parts, given: Mapping[str, Any]) -> None:
    limits = parts.limits
    if given["k"] is not None and given["k"] > limits.k:
        raise RequestProblem("limit", f"k must be at most {limits.k}, got {given['k']}")
    if given["pool"] is not None and given["pool"] > 100 * limits.k:
        raise RequestProblem("limit", f"pool must be at most {100 * limits.k}, got {given['pool']}")


def _can_be_joined(parts: Parts, given: Mapping[str, Any]) -> bool:
    """Whether nothing but k says what to return."""
    if given["by"] == "weights" and parts.store.has_factors:
        return False
    is_filtered = given["allowed"] is not None or given["labels"] is not None
    is_plain = given["radius"] is None and given["ties"] == "id" and given["rerank"] is None
    return is_plain and not is_filtered and not {"codes", "histogram"} & {*given["include"]}


async def _count(search: LoneSearch, n_results: int) -> tuple[int, np.ndarray | None]:
    """How many items the answer has, and how many lie at each distance if it tells that."""
    if not search.is_ragged:
        _require_few_results(search.parts, n_results)
    if not search.is_counted:
        return n_results, None
    parts, n_queries, moment = search.parts, len(search.queries), search.moment
    has_histogram = "histogram" in search.given["include"]
    _require_work(parts, "comparisons", n_queries, len(moment))
    if has_histogram:
        _require_few_results(parts, n_queries * (moment.n_bits + 1), "numbers in its histograms")

    def summarize(counts: np.ndarray) -> tuple[int, int, np.ndarray | None]:
        n_items = _n_nearest(counts, search.k, search.given["radius"]) if search.is_ragged else 0
        n_candidates = _n_nearest(counts, search.pool, None) if search.pool else 0
        return n_items, n_candidates, counts if has_histogram else None

    n_items, n_candidates, counts = zip(*await search.count(summarize), strict=True)
    if search.given["ties"] == "complete":
        _require_work(parts, "candidates", sum(n_candidates), 1)
    histogram = np.concatenate(counts) if has_histogram else None
    return sum(n_items) if search.is_ragged else n_results, histogram


async def _find_alone(search: LoneSearch, histogram: np.ndarray | None) -> SearchResult:
    """The answer by itself."""
    started, parts = time.perf_counter(), search.parts
    matches = await search.search()
    parts.metrics.observe("rankbits_scan_seconds", time.perf_counter() - started)
    result = SearchResult(matches, search.queries.bits, histogram)
    if "codes" not in search.given["include"]:
        return result
    ids = matches.ragged().ids
    groups = [ids[start : start + _CODES_AT_ONCE] for start in range(0, len(ids), _CODES_AT_ONCE)]
    codes = [await parts.batcher.run_aside(search.moment.codes, group) for group in groups or [ids]]
    packed = np.concatenate([group.packed for group in codes])
    return replace(result, item_codes=BinaryCodes(packed, codes[0].n_bits))


def _n_nearest(counts: np.ndarray, k: int | None, radius: int | None) -> int:
    """How many items the queries have, from the number at each distance, ties of the k-th too."""
    n_near = np.cumsum(counts, axis=1)
    n_of_query = n_near[:, -1]
    if k is not None:
        farthest = np.minimum((n_near < k).sum(axis=1), n_near.shape[1] - 1)
        n_of_query = np.take_along_axis(n_near, farthest[:, None], axis=1)[:, 0]
    if radius is not None:
        n_of_query = np.minimum(n_of_query, n_near[:, min(radius, n_near.shape[1] - 1)])
    return int(n_of_query.sum())


def _require_work(parts: Parts, name: str, n_queries: int, n_of_each: int) -> None:
    """Refuse a request that would cost more work than one may."""
    most = getattr(parts.limits, name)
    if n_queries * n_of_each > most:
        what = {"candidates": "queries times pool", "comparisons": "queries times items"}[name]
        detail = f"{name}, {what}, may be {most}, this request has {n_queries * n_of_each}"
        raise RequestProblem("limit", f"{detail}; send fewer queries at once")


def _require_few_results(parts: Parts, n_results: int, what: str = "items") -> None:
    """Refuse an answer that is too large, before it is collected."""
    if n_results > parts.limits.results:
        raise RequestProblem(
            "limit",
            f"an answer may have {parts.limits.results} {what}, this one would have {n_results}; "
            "lower k or radius, or send fewer queries",
        )
