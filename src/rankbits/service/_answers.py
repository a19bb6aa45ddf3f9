"""Answers to searches, as JSON or as arrays."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.service._parts import Parts
from rankbits.service._searching import Found


def as_lists(parts: Parts, found: Found, include: Sequence[str]) -> dict[str, Any]:
    """Lists for JSON, one of each kind for each query, without places that are left over."""
    answer = found.ragged()
    ids, values = answer.ids.tolist(), answer.distances.tolist()
    ends = answer.offsets.tolist()
    slices = [slice(a, b) for a, b in pairwise(ends)]
    content: dict[str, Any] = {
        "ids": [ids[part] for part in slices],
        found.column: [values[part] for part in slices],
    }
    if "codes" in include:
        digits = hex_of(found.item_codes)
        content["query_codes"] = hex_of(found.query_codes)
        content["codes"] = [digits[part] for part in slices]
    if "fields" in include:
        known = {item: fields_of(parts, item) for item in set(ids)}
        content["fields"] = [[known[item] for item in ids[part]] for part in slices]
    if found.histogram is not None:
        content["histogram"] = found.histogram.tolist()
    return content


def as_arrays(found: Found) -> dict[str, np.ndarray]:
    """Tables (queries, k), filled up with -1 where items are missing, or arrays with offsets."""
    arrays: dict[str, np.ndarray] = {"ids": found.ids, found.column: found.values}
    if found.offsets is not None:
        arrays["offsets"] = found.offsets
    if found.histogram is not None:
        arrays["histogram"] = found.histogram
    if found.item_codes is not None and found.query_codes is not None:
        arrays["codes"] = found.item_codes.packed
        arrays["query_codes"] = found.query_codes.packed
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
