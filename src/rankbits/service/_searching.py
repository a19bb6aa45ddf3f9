"""From a search request to its answer: the same calls that a program would make itself.

What can be joined with other requests goes through the batcher. What needs several looks at the
collection (counts beside items, results whose number nobody knows before) takes them at one moment.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankbits import index
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import HammingIndex, Ragged
from rankbits.index.results import of_table
from rankbits.service._batching import ScanRequest
from rankbits.service._parts import Parts
from rankbits.service._problems import RequestProblem
from rankbits.service._queries import Queries, resolve

_DEFAULT_K = 10


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Items of all queries.

    Attributes
    ----------
    column : "distances" or "scores"
    values, ids : tables (queries, k), or behind one another if there are offsets
    offsets : where the items of each query begin, or None
    query_codes : codes of the queries, None where only numbers were compared
    histogram : items at each distance of each query, or None
    item_codes : codes of all items, behind one another, or None
    """

    column: str
    values: np.ndarray
    ids: np.ndarray
    offsets: np.ndarray | None
    query_codes: BinaryCodes | None
    histogram: np.ndarray | None = None
    item_codes: BinaryCodes | None = None

    def ragged(self) -> Ragged:
        """Items behind one another, without places that are left over."""
        if self.offsets is not None:
            return Ragged(self.offsets, self.values, self.ids)
        return of_table(self.values, self.ids)


async def find(parts: Parts, given: Mapping[str, Any]) -> SearchResult:
    """The answer to a request."""
    _require_consistent(given)
    _require_limits(parts, given)
    needs_codes = given["query"] == "bits" or "codes" in given["include"]
    needs_codes = needs_codes or "histogram" in given["include"]
    queries: Queries
    if given["codes"] is not None:  # they need neither model nor disk, and a thread takes longer
        queries = resolve(parts, given, needs_codes)
    else:
        queries = await parts.batcher.run(resolve, parts, given, needs_codes)
    kind = given["query"]
    parts.metrics.count("rankbits_queries_total", len(queries), kind=kind)
    k = given["k"] if given["k"] is not None or given["radius"] is not None else _DEFAULT_K
    if _can_be_joined(parts, given):
        _require_few_results(parts, given, len(queries), k, None)
        rows = _require_codes(queries).packed if kind == "bits" else np.asarray(queries.weights)
        values, ids = await parts.batcher.scan(ScanRequest(kind, rows, k))
        return SearchResult(
            "distances" if kind == "bits" else "scores", values, ids, None, queries.codes
        )
    result: SearchResult = await parts.batcher.run(_find_alone, parts, given, queries, k)
    return result


def _require_consistent(given: Mapping[str, Any]) -> None:
    """Refuse fields that contradict each other."""
    is_scored = given["query"] == "real" or given["rescore"] is not None
    if is_scored and given["radius"] is not None:
        raise RequestProblem(
            "invalid", "radius must come without query=real and rescore: scores have none"
        )
    if given["query"] == "real" and (given["ties"] == "complete" or given["rescore"] is not None):
        raise RequestProblem("invalid", "query=real must come without ties=complete and rescore")
    if (given["rescore"] == "weighted_bits") != (given["weights"] is not None):
        raise RequestProblem("invalid", "weights and rescore=weighted_bits must come together")
    if given["pool"] is not None and given["rescore"] is None:
        raise RequestProblem("invalid", "pool must come with rescore")
    if given["ties"] == "complete" and given["k"] is None and given["radius"] is not None:
        raise RequestProblem(
            "invalid", "ties=complete must come with k: a radius alone has all ties"
        )


def _require_limits(parts: Parts, given: Mapping[str, Any]) -> None:
    limits = parts.limits
    if given["k"] is not None and given["k"] > limits.k:
        raise RequestProblem("limit", f"k must be at most {limits.k}, got {given['k']}")
    if given["pool"] is not None and given["pool"] > 100 * limits.k:
        raise RequestProblem("limit", f"pool must be at most {100 * limits.k}, got {given['pool']}")


def _can_be_joined(parts: Parts, given: Mapping[str, Any]) -> bool:
    """Whether nothing but k says what to return."""
    if given["query"] == "real" and parts.store.has_factors:
        return False
    is_filtered = given["allowed"] is not None or given["labels"] is not None
    is_plain = given["radius"] is None and given["ties"] == "id" and given["rescore"] is None
    return is_plain and not is_filtered and not {"codes", "histogram"} & {*given["include"]}


def _find_alone(
    parts: Parts, given: Mapping[str, Any], queries: Queries, k: int | None
) -> SearchResult:
    """The answer at one moment, by itself."""
    started = time.perf_counter()
    moment = parts.store.moment()
    allowed = _allowed(parts, given)
    is_ragged = given["radius"] is not None or given["ties"] == "complete"
    counts = None
    if is_ragged or "histogram" in given["include"]:
        counts = moment.tie_counts(_require_codes(queries), allowed=allowed)
    _require_few_results(parts, given, len(queries), k, counts if is_ragged else None)
    column, offsets, values, ids = _search(parts, moment, given, queries, k, allowed)
    parts.metrics.observe("rankbits_scan_seconds", time.perf_counter() - started)
    result = SearchResult(column, values, ids, offsets, queries.codes)
    if "histogram" in given["include"]:
        result = replace(result, histogram=counts)
    if "codes" in given["include"]:
        result = replace(result, item_codes=moment.codes(result.ragged().ids))
    return result


def _search(
    parts: Parts,
    moment: HammingIndex,
    given: Mapping[str, Any],
    queries: Queries,
    k: int | None,
    allowed: np.ndarray | None,
) -> tuple[str, np.ndarray | None, np.ndarray, np.ndarray]:
    """Column, offsets, values and ids."""
    if given["query"] == "real":
        correction = parts.encoder.correction(moment.has_factors)
        weights, k = queries.weights, int(k or 1)
        scores, ids = moment.search_real(weights, k, allowed=allowed, correction=correction)
        return "scores", None, scores, ids
    codes = _require_codes(queries)
    if given["rescore"] is not None:
        finer = {"rescore": _rescore(parts, given, queries), "pool": given["pool"]}
        k = int(k or 1)
        scores, ids = moment.search(codes, k, given["ties"], allowed=allowed, **finer)
        return "scores", None, scores, ids
    if k is None:
        return "distances", *moment.within(codes, given["radius"], allowed=allowed)
    answer = moment.search(codes, k, given["ties"], allowed=allowed)
    ragged = answer if isinstance(answer, Ragged) else of_table(*answer)
    if given["radius"] is not None:
        return "distances", *_within(ragged, given["radius"])
    if given["ties"] == "complete":
        return "distances", *ragged
    return "distances", None, *answer


def _within(answer: Ragged, radius: int) -> Ragged:
    """What is no farther than a radius."""
    is_near = answer.distances <= radius
    counts = np.bincount(answer.queries()[is_near], minlength=len(answer.counts))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Ragged(offsets, answer.distances[is_near], answer.ids[is_near])


def _rescore(parts: Parts, given: Mapping[str, Any], queries: Queries) -> Any:
    if given["rescore"] == "weighted_bits":
        return index.weighted_bits(np.asarray(given["weights"], np.float64))
    if given["rescore"] == "asymmetric":
        return index.asymmetric(queries.weights)
    return index.vectors(parts.vectors, queries.rows, given["metric"])


def _allowed(parts: Parts, given: Mapping[str, Any]) -> np.ndarray | None:
    """Ids that may be returned; None for all."""
    allowed = None if given["allowed"] is None else np.asarray(given["allowed"], np.int64)
    if given["labels"] is None:
        return allowed
    if parts.items is None:
        raise InputError("labels must go with a table of items, which this server has none of")
    labelled = parts.items.labelled(given["labels"])
    return labelled if allowed is None else np.intersect1d(labelled, allowed)


def _require_codes(queries: Queries) -> BinaryCodes:
    if queries.codes is None:
        raise LookupError("codes of the queries were not resolved")
    return queries.codes


def _require_few_results(
    parts: Parts, given: Mapping[str, Any], n_queries: int, k: int | None, counts: np.ndarray | None
) -> None:
    """Refuse an answer that is too large, before it is collected."""
    n_results = n_queries * (k or 0)
    if counts is not None:
        n_near = np.cumsum(counts, axis=1)
        n_of_query = n_near[:, -1]
        if k is not None:
            farthest = np.minimum((n_near < k).sum(axis=1), n_near.shape[1] - 1)
            n_of_query = np.take_along_axis(n_near, farthest[:, None], axis=1)[:, 0]
        if given["radius"] is not None:
            reach = min(given["radius"], n_near.shape[1] - 1)
            n_of_query = np.minimum(n_of_query, n_near[:, reach])
        n_results = int(n_of_query.sum())
    if n_results > parts.limits.results:
        raise RequestProblem(
            "limit",
            f"an answer may have {parts.limits.results} items, this one would have {n_results}; "
            "lower k or radius, or send fewer queries",
        )
