"""JSON: values that it can hold, and files of ours that carry the checksum of their own content.

A sealed file has `format`, `version` and `json_sha256` among its keys. One that was altered, cut or
written by something else is refused before any of its values is used.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankbits._files import one_line
from rankbits.errors import FileFormatError

_CHECKSUM = "json_sha256"


def as_json(value: Any) -> Any:
    """NumPy's numbers become Python's, arrays become lists, infinity and NaN null, all else text.

    >>> as_json({"rate": np.float32(0.5), "sizes": (2, np.int64(3)), "score": float("nan")})
    {'rate': 0.5, 'sizes': [2, 3], 'score': None}
    """
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [as_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def seal(form: str, version: int, record: Mapping[str, Any]) -> bytes:
    """The content of a file: a record with its format, version and checksum."""
    content = {"format": form, "version": version, **record}
    content[_CHECKSUM] = _checksum(content)
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def unseal(data: bytes, name: str, form: str, version: int) -> dict[str, Any]:
    """The record in a sealed file; a FileFormatError begins with `name` and says what is wrong."""
    try:
        record = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{name} is not JSON: {one_line(error)[:100]}") from None
    if not isinstance(record, dict) or record.get("format") != form:
        raise FileFormatError(f"{name} must have the format {form!r}, it has another")
    if record.get("version") != version:
        raise FileFormatError(
            f"{name} has format version {record.get('version')!r:.40}, but this rankbits "
            f"({installed_version()}) reads {version}; update rankbits"
        )
    try:
        is_whole = record.get(_CHECKSUM) == _checksum(record)
    except (ValueError, RecursionError):  # such as a number too large for a float
        is_whole = False
    if not is_whole:
        raise FileFormatError(f"{name} is damaged: its checksum does not match")
    del record[_CHECKSUM]
    return record


def installed_version() -> str:
    """The version of rankbits."""
    from importlib.metadata import version  # slow to import, and seldom needed

    return version("rankbits")


def _checksum(record: Mapping[str, Any]) -> str:
    """SHA-256 of all other fields, written in one fixed way."""
    rest = {name: value for name, value in record.items() if name != _CHECKSUM}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
