"""Arrays in one body: the layout of safetensors, for batches that JSON would make slow.

A body begins with the length of its header, 8 bytes, little-endian. The header is a JSON object:
the type, shape and place of each array by name, and texts by name under "__metadata__". The bytes
of all arrays follow. So whatever reads safetensors reads it, and nothing in it is ever executed.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankbits.errors import InputError

MEDIA_TYPE = "application/octet-stream"
_TYPES = {
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "I8": "|i1",
    "I32": "<i4",
    "I64": "<i8",
    "U8": "|u1",
}
_NAMES = {np.dtype(dtype): name for name, dtype in _TYPES.items()}
_METADATA = "__metadata__"
_MOST_HEADER = 1 << 20
_MOST_MARKS = 1 << 15  # brackets and commas of a header, those of its texts included


def dump(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> bytes:
    """One body of arrays by name, and of texts by name.

    >>> arrays, texts = load(dump({"ids": np.array([[3, 1]])}, {"k": "2"}))
    >>> arrays["ids"].tolist(), texts
    ([[3, 1]], {'k': '2'})
    """
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    parts, start = [], 0
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        dtype = array.dtype.newbyteorder("<")
        if dtype not in _NAMES:
            raise InputError(f"{name} must be of a type among {', '.join(_TYPES)}, got {dtype}")
        data = array.astype(dtype, copy=False).tobytes()
        place = [start, start + len(data)]
        header[name] = {"dtype": _NAMES[dtype], "shape": list(array.shape), "data_offsets": place}
        parts.append(data)
        start += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that arrays begin at a multiple of their size
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def load(body: bytes | bytearray) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the texts of a body; whatever does not fit is an InputError."""
    length = int.from_bytes(body[:8], "little")
    if len(body) < 8 or length > min(len(body) - 8, _MOST_HEADER):
        raise InputError("body must begin with 8 bytes, the length of the header that follows")
    text = body[8 : 8 + length]
    if sum(map(text.count, (b"[", b"{", b","))) > _MOST_MARKS:
        raise InputError(f"body must have a header of at most {_MOST_MARKS} lists and elements")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("body must have a header of JSON, in UTF-8") from None
    if not isinstance(header, dict):
        raise InputError("body must have a JSON object as its header")
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise InputError(f"{_METADATA} of the header must be an object of strings")
    data = memoryview(body)[8 + length :]
    return {name: _array(name, entry, data) for name, entry in header.items()}, metadata


def _array(name: str, entry: Any, data: memoryview) -> np.ndarray:
    """The array of one entry of a header."""
    try:
        dtype, shape = np.dtype(_TYPES[entry["dtype"]]), entry["shape"]
        start, stop = entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"{name} must have a dtype among {', '.join(_TYPES)}, a shape and two data_offsets"
        ) from None
    if not (isinstance(shape, list) and len(shape) <= 4 and all(map(_is_size, shape))):
        raise InputError(f"{name} must have a shape of at most four whole numbers")
    is_inside = _is_size(start) and _is_size(stop) and start <= stop <= len(data)
    if not is_inside or stop - start != math.prod(shape) * dtype.itemsize:
        raise InputError(
            f"{name} must have data_offsets within the body, as long as its shape says"
        )
    if start == stop:
        return np.empty([min(size, 1 << 20) for size in shape], dtype)
    return np.frombuffer(data[start:stop], dtype).reshape(shape)


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 48
