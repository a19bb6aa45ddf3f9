"""Answers to searches, as JSON or as arrays."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np
from fastapi import Response

from rankbits.codes import BinaryCodes
from rankbits.index import Matches
from rankbits.service._bodies import json_bytes, json_response, small_json_response, writable
from rankbits.service._parts import Parts
from rankbits.service._problems import RequestProblem
from rankbits.service._searching import SearchResult

_FEW = 1000  # elements that are written on the event loop
_ITEMS_AT_ONCE = 64


async def search_response(
    parts: Parts, result: SearchResult, include: Sequence[str], milliseconds: Callable[[], float]
) -> Response:
    """An answer as JSON. A large one is written aside, some thousand elements at a time."""
    fields = await _fields(parts, result) if "fields" in include else None

    def write() -> Response:
        content = as_lists(result, include, fields)
        return json_response({**content, "milliseconds": milliseconds()})

    n_texts = result.matches.ids.size + (0 if result.histogram is None else result.histogram.size)
    if n_texts <= _FEW and fields is None:
        content = as_lists(result, include, None)
        return small_json_response({**content, "milliseconds": milliseconds()})
    response: Response = await parts.batcher.run_aside(write)
    return response


async def _fields(parts: Parts, result: SearchResult) -> dict[int, Mapping[str, Any]]:
    """What is known about all items, by id; in ascending order, as a table mostly has them."""
    ids, n_times = np.unique(result.matches.ragged().ids, return_counts=True)
    known: dict[int, Mapping[str, Any]] = {}
    n_bytes, most = 0, parts.limits.body_bytes

    def look(group: slice) -> int:
        fields = {item: fields_of(parts, item) for item in ids[group].tolist()}
        known.update(fields)
        lengths = [len(json_bytes(dict(one))) for one in fields.values()]
        return int(np.dot(lengths, n_times[group]))

    for start in range(0, len(ids), _ITEMS_AT_ONCE):
        n_bytes += await parts.batcher.run_aside(look, slice(start, start + _ITEMS_AT_ONCE))
        if n_bytes > most:
            detail = f"fields of an answer may have {most} bytes; lower k, or send fewer queries"
            raise RequestProblem("limit", detail)
    return known


def as_lists(
    result: SearchResult, include: Sequence[str], fields: Mapping[int, Mapping[str, Any]] | None
) -> dict[str, Any]:
    """Lists for JSON, one of each kind for each query, without places that are left over."""
    ids, values = _rows(result.matches)
    content: dict[str, Any] = {"ids": ids, "distances": values}
    if "codes" in include:
        digits = iter(hex_of(result.item_codes))
        content["query_codes"] = hex_of(result.query_codes)
        content["codes"] = [list(islice(digits, len(row))) for row in ids]
    if fields is not None:
        content["fields"] = [[fields[int(item)] for item in row] for row in ids]
    if result.histogram is not None:
        content["histogram"] = writable(result.histogram)
    return content


def _rows(matches: Matches) -> tuple[Any, Any]:
    """Ids and distances, a list or a row of an array for each query."""
    distances, ids = matches.distances, matches.ids
    n_places = 0 if matches.offsets is not None else ids.shape[1]
    if n_places and (ids[:, -1] >= 0).all():  # none is left over at the end of a row
        return writable(ids), writable(distances)
    answer = matches.ragged()
    slices = [slice(a, b) for a, b in pairwise(answer.offsets.tolist())]
    listed_ids, listed = answer.ids.tolist(), answer.distances.tolist()
    return [listed_ids[part] for part in slices], [listed[part] for part in slices]


def as_arrays(result: SearchResult) -> dict[str, np.ndarray]:
    """Tables (queries, k), filled up with -1 where items are missing, or arrays with offsets."""
    matches = result.matches
    arrays: dict[str, np.ndarray] = {"ids": matches.ids, "distances": matches.distances}
    if matches.offsets is not None:
        arrays["offsets"] = matches.offsets
    if result.histogram is not None:
        arrays["histogram"] = result.histogram
    if result.item_codes is not None and result.query_codes is not None:
        arrays["codes"] = result.item_codes.packed
        arrays["query_codes"] = result.query_codes.packed
    return arrays


def hex_of(codes: BinaryCodes | None) -> list[str]:
    """Codes as hexadecimal digits."""
    if codes is None:
        return []
    digits, width = codes.packed.tobytes().hex(), 2 * codes.packed.shape[1]
    return [digits[start : start + width] for start in range(0, len(digits), width)]


def fields_of(parts: Parts, item: int) -> Mapping[str, Any]:
    """What is known about an item, with the address of its picture."""
    fields = {} if parts.items is None else parts.items.fields(item)
    image = image_of(parts, item)
    return fields if image is None else {**fields, "image": image}


def image_of(parts: Parts, item: int) -> str | None:
    """The address of an item's picture."""
    has_image = parts.images is not None and parts.images.has(item)
    return f"/items/{item}/image" if has_image else None
