"""JSON: values that it can hold, and files of ours that carry the checksum of their own content.

A sealed file has `format`, `version` and `json_sha256` among its keys. One that was altered, cut or
written by something else is refused before any of its values is used. A text of somebody else is
read within bounds: so many values and levels, and no numbers that JSON does not have.
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
MOST_BYTES = 16 << 20  # of a text that somebody else may have written
_MOST_VALUES, _MOST_LEVELS = 400_000, 32
_BEGINNINGS = b",[{"  # of values


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


def parse_json(name: str, text: bytes, most_values: int = _MOST_VALUES) -> Any:
    """The value of a JSON text; `name` is the file that a FileFormatError says it is from."""
    if sum(map(text.count, (bytes([sign]) for sign in _BEGINNINGS))) > most_values:
        raise FileFormatError(f"{name} must have at most {most_values} values, it has more")
    try:
        value = json.loads(text, parse_constant=_refuse_number, parse_float=_parse_float)
        _require_flat(value)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{name} is not JSON: {one_line(error)[:100]}") from None
    return value


def _require_flat(value: Any) -> None:
    """Refuse a value that is nested too deeply for those who go through it."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [part for outer in level for part in _parts(outer) if part]
        if not level:
            return
    raise ValueError(f"it has more than {_MOST_LEVELS} levels")


def _parts(value: Any) -> list[Any]:
    """The lists and dicts in a value."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in parts if isinstance(part, dict | list)]


def _parse_float(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse_number(digits)


def _refuse_number(digits: str) -> float:
    raise ValueError(f"{digits[:40]} is not a number of JSON that can be held")


def seal(form: str, version: int, record: Mapping[str, Any]) -> bytes:
    """The content of a file: a record with its format, version and checksum."""
    content = {"format": form, "version": version, **record}
    content[_CHECKSUM] = _checksum(content)
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def unseal(data: bytes, name: str, form: str, version: int) -> dict[str, Any]:
    """The record in a sealed file; a FileFormatError begins with `name` and says what is wrong."""
    record = parse_json(name, data)
    if not isinstance(record, dict) or record.get("format") != form:
        raise FileFormatError(f"{name} must have the format {form!r}, it has another")
    if record.get("version") != version:
        raise FileFormatError(
            f"{name} has format version {record.get('version')!r:.40}, but this rankbits "
            f"({installed_version()}) reads {version}; update rankbits"
        )
    if record.get(_CHECKSUM) != _checksum(record):
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
