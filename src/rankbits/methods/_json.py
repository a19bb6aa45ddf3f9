"""Parameters and facts as JSON values, and back.

What JSON lacks is wrapped: a tuple as {"__tuple__": [...]}, a float that is not finite as
{"__float__": "nan"}, "inf" or "-inf".
"""

import math
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.errors import FileFormatError, InputError

_TUPLE, _FLOAT = "__tuple__", "__float__"
_NOT_FINITE = ("nan", "inf", "-inf")


def plain(name: str, value: Any) -> Any:
    """The JSON form of None, bools, numbers, strings, lists, tuples, and dicts of them.

    NumPy's scalars become Python's. Anything else is refused under the name it came with.

    >>> plain("params", {"sizes": (256, 64), "rate": np.float32(0.5)})
    {'sizes': {'__tuple__': [256, 64]}, 'rate': 0.5}
    """
    if isinstance(value, np.bool_ | np.integer | np.floating):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT: str(value)}
    if isinstance(value, tuple | list):
        items = [plain(f"{name}[{place}]", item) for place, item in enumerate(value)]
        return items if isinstance(value, list) else {_TUPLE: items}
    if isinstance(value, dict) and all(map(_is_own_key, value)):
        return {key: plain(f"{name}[{key!r}]", item) for key, item in value.items()}
    raise InputError(
        f"{name} must be JSON to be saved (None, bool, number, string, list, tuple or dict), "
        f"got {_check.describe(value)}{_hint(value)}"
    )


def revived(value: Any) -> Any:
    """What `plain` was given.

    >>> revived({"sizes": {"__tuple__": [256, 64]}})
    {'sizes': (256, 64)}
    """
    if isinstance(value, list):
        return [revived(item) for item in value]
    if not isinstance(value, dict):
        return value
    if all(map(_is_own_key, value)):
        return {key: revived(item) for key, item in value.items()}
    kind, content = next(iter(value.items()))
    if len(value) == 1 and kind == _TUPLE and isinstance(content, list):
        return tuple(revived(item) for item in content)
    if len(value) == 1 and kind == _FLOAT and content in _NOT_FINITE:
        return float(content)
    raise FileFormatError(f"a wrapped value must be a tuple or a float, got {value!r:.60}")


def _is_own_key(key: Any) -> bool:
    """Whether a key of a dict is a string that wraps nothing."""
    return isinstance(key, str) and key not in (_TUPLE, _FLOAT)


def _hint(value: Any) -> str:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return "; give an integer as seed"
    return "; set it to None before saving" if callable(value) else ""
