"""Parameters and facts as JSON values, and JSON values as parameters and facts.

Values that JSON does not have are wrapped: a tuple as {"__tuple__": [...]}, a float that is not
finite as {"__float__": "nan"}, "inf" or "-inf".

A text of somebody else is read within bounds: so many bytes, values and levels, and no numbers that
JSON does not have.
"""

import json
import math
from typing import Any

import numpy as np

from rankbits import _check
from rankbits._files import one_line
from rankbits.errors import FileFormatError, InputError

_TUPLE, _FLOAT = "__tuple__", "__float__"
_NOT_FINITE = ("nan", "inf", "-inf")
MOST_BYTES = 16 << 20  # of a text
_MOST_VALUES, _MOST_LEVELS = 400_000, 32
_BEGINNINGS = b",[{"  # of values


def to_json(name: str, value: Any) -> Any:
    """The JSON form of None, bools, numbers, strings, lists, tuples, and dicts of them.

    NumPy's scalars become Python's. Anything else is an error that names it.

    >>> to_json("params", {"sizes": (256, 64), "rate": np.float32(0.5)})
    {'sizes': {'__tuple__': [256, 64]}, 'rate': 0.5}
    """
    if isinstance(value, np.bool_ | np.integer | np.floating):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT: str(value)}
    if isinstance(value, tuple | list):
        items = [to_json(f"{name}[{place}]", item) for place, item in enumerate(value)]
        return items if isinstance(value, list) else {_TUPLE: items}
    if isinstance(value, dict) and all(map(_is_plain_key, value)):
        return {key: to_json(f"{name}[{key!r}]", item) for key, item in value.items()}
    raise InputError(
        f"{name} must be None, a bool, a number, a string, a list, a tuple or a dict to be saved, "
        f"got {_check.describe(value)}{_hint(value)}"
    )


def from_json(value: Any) -> Any:
    """What `to_json` was given.

    >>> from_json({"sizes": {"__tuple__": [256, 64]}})
    {'sizes': (256, 64)}
    """
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if all(map(_is_plain_key, value)):
        return {key: from_json(item) for key, item in value.items()}
    kind, content = next(iter(value.items()))
    if len(value) == 1 and kind == _TUPLE and isinstance(content, list):
        return tuple(from_json(item) for item in content)
    if len(value) == 1 and kind == _FLOAT and content in _NOT_FINITE:
        return float(content)
    raise FileFormatError(f"a wrapped value must be a tuple or a float, got {value!r:.60}")


def parse_json(name: str, text: bytes) -> Any:
    """The value of a JSON text; `name` is the file that a FileFormatError says it is from."""
    if sum(map(text.count, (bytes([sign]) for sign in _BEGINNINGS))) > _MOST_VALUES:
        raise FileFormatError(f"{name} must have at most {_MOST_VALUES} values, it has more")
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


def _is_plain_key(key: Any) -> bool:
    """Whether a key of a dict is a string that wraps nothing."""
    return isinstance(key, str) and key not in (_TUPLE, _FLOAT)


def _hint(value: Any) -> str:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return "; pass an integer as the seed"
    return "; set it to None before saving" if callable(value) else ""
