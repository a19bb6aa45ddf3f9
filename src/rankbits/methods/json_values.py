"""Parameters and facts as JSON values, and JSON values as parameters and facts.

Values that JSON does not have are wrapped: a tuple as {"__tuple__": [...]}, a float that is not
finite as {"__float__": "nan"}, "inf" or "-inf".
"""

import math
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.errors import FileFormatError, InputError

_TUPLE, _FLOAT = "__tuple__", "__float__"
_NOT_FINITE = ("nan", "inf", "-inf")


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


def _is_plain_key(key: Any) -> bool:
    """Whether a key of a dict is a string that wraps nothing."""
    return isinstance(key, str) and key not in (_TUPLE, _FLOAT)


def _hint(value: Any) -> str:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return "; pass an integer as the seed"
    return "; set it to None before saving" if callable(value) else ""
