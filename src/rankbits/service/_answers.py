"""Answers to searches, as JSON or as arrays."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.service._parts import Parts
from rankbits.service._searching import SearchResult


def as_lists(parts: Parts, result: SearchResult, include: Sequence[str]) -> dict[str, Any]:
    """Lists for JSON, one of each kind for each query, without places that are left over."""
    answer = result.ragged()
    ids, values = answer.ids.tolist(), answer.distances.tolist()
    ends = answer.offsets.tolist()
    slices = [slice(a, b) for a, b in pairwise(ends)]
    content: dict[str, Any] = {
        "ids": [ids[part] for part in slices],
        result.column: [values[part] for part in slices],
    }
    if "codes" in include:
        digits = hex_of(result.item_codes)
        content["query_codes"] = hex_of(result.query_codes)
        content["codes"] = [digits[part] for part in slices]
    if "fields" in include:
        known = {item: fields_of(parts, item) for item in set(ids)}
        content["fields"] = [[known[item] for item in ids[part]] for part in slices]
    if result.histogram is not None:
        content["histogram"] = result.histogram.tolist()
    return content


def as_arrays(result: SearchResult) -> dict[str, np.ndarray]:
    """Tables (queries, k), filled up with -1 where items are missing, or arrays with offsets."""
    arrays: dict[str, np.ndarray] = {"ids": result.ids, result.column: result.values}
    if result.offsets is not None:
        arrays["offsets"] = result.offsets
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
