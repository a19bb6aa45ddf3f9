"""Queries of a request in the forms that its search needs: bits, weights, rows of the model."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rankbits._mapped import unchanged
from rankbits.codes import BinaryCodes, Queries
from rankbits.codes.sides import ITEMS
from rankbits.service._parts import Parts
from rankbits.service._problems import RequestProblem

_FEW_ROWS = 16
_HEX = re.compile("[0-9a-fA-F]*")
_WAYS = ("vectors", "texts", "pictures", "codes", "ids")


def chosen_way(given: Mapping[str, Any], ways: tuple[str, ...] = _WAYS) -> str:
    """The one field that has the rows of a request."""
    there = [way for way in ways if way in given and given[way] is not None]
    if len(there) != 1:
        raise RequestProblem(
            "invalid", f"exactly one of {', '.join(ways)} must be given, got {len(there)}"
        )
    return there[0]


def require_batch(parts: Parts, rows: Any, name: str) -> None:
    """Refuse no rows at all, and more than the limit."""
    if len(rows) == 0:
        raise RequestProblem("invalid", f"{name} must not be empty")
    if len(rows) > parts.limits.batch:
        detail = f"{name} must be at most {parts.limits.batch}, got {len(rows)}"
        raise RequestProblem("limit", f"{detail}; send them in several requests")


async def run_for(parts: Parts, n_rows: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of work on so many rows; work on many makes nobody wait who has few."""
    run = parts.batcher.run if n_rows <= _FEW_ROWS else parts.batcher.run_aside
    return await run(function, *arguments)


async def readable(parts: Parts, way: str, values: Any) -> Any:
    """What `rows_of` reads: pictures are decoded one after the other, all else is as it came."""
    if way != "pictures":
        return values
    n_pixels = 0
    for text in values:
        n_pixels += await parts.batcher.run_aside(parts.encoder.n_pixels, text)
        if n_pixels > parts.limits.pixels:
            detail = f"the pictures of a request may have {parts.limits.pixels} pixels together"
            raise RequestProblem("limit", f"{detail}; send smaller ones, or fewer")
    decode = parts.encoder.rows_of_pictures
    return np.concatenate([await parts.batcher.run_aside(decode, [text]) for text in values])


def rows_of(parts: Parts, way: str, values: Any) -> np.ndarray:
    """Rows of the model from what `readable` gave."""
    if way == "vectors":
        return parts.encoder.rows_of_vectors(values)
    if way == "texts":
        return parts.encoder.rows_of_texts(values)
    return np.asarray(values)


def codes_of(parts: Parts, values: Any, name: str = "codes") -> BinaryCodes:
    """Codes that came as hexadecimal digits or as bytes."""
    n_bytes, n_bits = parts.store.n_bytes, parts.store.n_bits
    if isinstance(values, np.ndarray):
        packed = values
    else:
        if any(len(text) != 2 * n_bytes for text in values):
            detail = f"{name} must have {2 * n_bytes} hexadecimal digits for {n_bits} bits"
            raise RequestProblem("invalid", detail)
        digits = "".join(values)
        if not _HEX.fullmatch(digits):
            raise RequestProblem("invalid", f"{name} must be hexadecimal digits")
        packed = np.frombuffer(bytes.fromhex(digits), np.uint8).reshape(-1, n_bytes)
    return BinaryCodes(np.ascontiguousarray(packed), n_bits)


async def resolve(parts: Parts, given: Mapping[str, Any], needs_codes: bool) -> Queries:
    """The queries of a search, however they are given."""
    way = chosen_way(given)
    values = given[way]
    require_batch(parts, values, way)
    needs_weights = given["by"] == "weights" or given["rerank"] == "weights"
    needs_rows = needs_weights or given["rerank"] == "vectors"
    if given["rerank"] == "vectors" and parts.vectors is None:
        raise RequestProblem(
            "invalid", "rerank=vectors must go with --vectors, which was not given"
        )
    if way == "codes":  # they need neither model nor disk, and a thread takes longer
        if needs_rows:
            raise RequestProblem(
                "invalid", "codes have no numbers; give vectors for by=weights or rerank"
            )
        return Queries(codes_of(parts, values))
    needs = Needs(needs_codes, needs_weights, needs_rows)
    of_way = _of_items if way == "ids" else _of_rows
    values = await readable(parts, way, values)
    queries: Queries = await run_for(parts, len(values), of_way, parts, way, values, needs)
    return queries


class Needs(NamedTuple):
    """Forms of queries that a search needs."""

    codes: bool
    weights: bool
    rows: bool


def _of_items(parts: Parts, way: str, values: np.ndarray, needs: Needs) -> Queries:
    """Items as queries: their codes, or their vectors where codes of items are no queries."""
    ids = np.asarray(values, np.int64)
    codes = parts.store.codes_of(ids)
    if not needs.rows and codes.side != ITEMS:
        return Queries(codes)
    if parts.vectors is None:
        raise RequestProblem(
            "invalid",
            "ids must come without by=weights and rerank, and with a model that encodes queries "
            "as items, unless the server was started with --vectors",
        )
    if ids.max(initial=-1) >= len(parts.vectors):
        raise RequestProblem("not-found", f"item {ids.max()} has no row in --vectors")
    with unchanged(parts.vectors):
        vectors = np.array(parts.vectors[ids])
    return _of_rows(parts, "vectors", vectors, needs)


def _of_rows(parts: Parts, way: str, values: Any, needs: Needs) -> Queries:
    """Rows of the model in every form that a search needs."""
    rows, encoder = rows_of(parts, way, values), parts.encoder
    return Queries(
        bits=encoder.encode(rows, "queries") if needs.codes else None,
        weights=encoder.weights(rows) if needs.weights else None,
        vectors=rows if needs.rows else None,
        correction=encoder.correction() if needs.weights else None,
    )
