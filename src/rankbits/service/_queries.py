"""Queries of a request: codes for distances, weights for scores, rows for the vectors of items."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits._mapped import unchanged
from rankbits.codes import BinaryCodes
from rankbits.codes.sides import ITEMS
from rankbits.service._parts import Parts
from rankbits.service._problems import RequestProblem

_WAYS = ("vectors", "texts", "pictures", "codes", "ids")


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries in every form that a search needs; None where it needs none.

    Attributes
    ----------
    n : how many there are
    codes : codes to compare with those of items
    weights : real-valued queries
    rows : rows that the model reads
    """

    n: int
    codes: BinaryCodes | None
    weights: np.ndarray | None
    rows: np.ndarray | None

    def __len__(self) -> int:
        return self.n


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


def rows_of(parts: Parts, way: str, values: Any) -> np.ndarray:
    """Rows of the model from what a request has."""
    if way == "vectors":
        return parts.encoder.rows_of_vectors(values)
    if way == "texts":
        return parts.encoder.rows_of_texts(values)
    return parts.encoder.rows_of_pictures(values)


def codes_of(parts: Parts, values: Any, name: str = "codes") -> BinaryCodes:
    """Codes that came as hexadecimal digits or as bytes."""
    n_bytes, n_bits = parts.store.n_bytes, parts.store.n_bits
    if isinstance(values, np.ndarray):
        packed = values
    else:
        if any(len(text) != 2 * n_bytes for text in values):
            detail = f"{name} must have {2 * n_bytes} hexadecimal digits for {n_bits} bits"
            raise RequestProblem("invalid", detail)
        packed = np.frombuffer(bytes.fromhex("".join(values)), np.uint8).reshape(-1, n_bytes)
    return BinaryCodes(np.ascontiguousarray(packed), n_bits)


def resolve(parts: Parts, given: Mapping[str, Any], needs_codes: bool) -> Queries:
    """The queries of a search, however they are given."""
    way = chosen_way(given)
    require_batch(parts, given[way], way)
    needs_weights = given["query"] == "real" or given["rescore"] == "asymmetric"
    needs_rows = needs_weights or given["rescore"] == "vectors"
    if given["rescore"] == "vectors" and parts.vectors is None:
        raise RequestProblem(
            "invalid", "rescore=vectors must go with --vectors, which was not given"
        )
    if way == "codes":
        if needs_rows:
            raise RequestProblem(
                "invalid", "codes have no numbers; give vectors for query=real or rescore"
            )
        return Queries(len(given["codes"]), codes_of(parts, given["codes"]), None, None)
    if way == "ids":
        return _of_items(
            parts, np.asarray(given["ids"], np.int64), needs_codes, needs_weights, needs_rows
        )
    rows = rows_of(parts, way, given[way])
    return _of_rows(parts, rows, needs_codes, needs_weights)


def _of_items(
    parts: Parts, ids: np.ndarray, needs_codes: bool, needs_weights: bool, needs_rows: bool
) -> Queries:
    """Items as queries: their codes, or their vectors where codes of items are no queries."""
    codes = parts.store.codes_of(ids)
    if not needs_rows and codes.side != ITEMS:
        return Queries(len(ids), codes, None, None)
    if parts.vectors is None:
        raise RequestProblem(
            "invalid",
            "ids must come without query=real and rescore, and with a model that encodes queries "
            "as items, unless the server was started with --vectors",
        )
    if ids.max(initial=-1) >= len(parts.vectors):
        raise RequestProblem("not-found", f"item {ids.max()} has no row in --vectors")
    with unchanged(parts.vectors):
        rows = parts.encoder.rows_of_vectors(np.array(parts.vectors[ids]))
    return _of_rows(parts, rows, needs_codes, needs_weights)


def _of_rows(parts: Parts, rows: np.ndarray, needs_codes: bool, needs_weights: bool) -> Queries:
    codes = parts.encoder.encode(rows, "queries") if needs_codes else None
    weights = parts.encoder.weights(rows) if needs_weights else None
    return Queries(len(rows), codes, weights, rows)
