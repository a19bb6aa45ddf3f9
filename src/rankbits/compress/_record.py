"""The content of `result.json`: sealed when it is written, and checked before anything reads it.

Whoever opens a folder relies on a few of its values. Those must be what they are called, also in a
file that somebody has made up.
"""

from collections.abc import Callable
from typing import Any

from rankbits._json import unseal
from rankbits.compress._searching import QUERY_KINDS
from rankbits.errors import FileFormatError

FORMAT, VERSION = "rankbits compression", 2
_SIMILARITIES = ("cosine", "ip", "l2")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 < value < 2**53


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e300


def _is_intervals(value: Any) -> bool:
    names = ("value", "kept", "low", "high")
    return isinstance(value, dict) and all(
        isinstance(row, dict) and all(_is_number(row.get(name)) for name in names)
        for row in value.values()
    )


_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "similarity": (f"one of {', '.join(_SIMILARITIES)}", lambda value: value in _SIMILARITIES),
    "vectors": ("a path or null", lambda value: value is None or _is_text(value)),
    "seconds": ("a number", _is_number),
    "data.items": ("a number of items", _is_count),
    "data.width": ("a number of columns", _is_count),
    "plan.training_rows": ("a number of items", _is_count),
    "recommendation.method": ("the name of a method", _is_text),
    "recommendation.bytes": ("a number of bytes", _is_count),
    "recommendation.query": (
        f"one of {', '.join(QUERY_KINDS)}",
        lambda value: value in QUERY_KINDS,
    ),
    "recommendation.pool": ("a number of items or null", lambda v: v is None or _is_count(v)),
    "recommendation.metric": ("the name of a metric", _is_text),
    "recommendation.metrics": ("value, kept, low and high of metrics", _is_intervals),
    "recommendation.sentence": ("a sentence", _is_text),
}


def parse_result(data: bytes, name: str) -> dict[str, Any]:
    """The result in a file; a FileFormatError begins with `name` and says what is wrong."""
    result = unseal(data, name, FORMAT, VERSION)
    for field, (what, is_right) in _FIELDS.items():
        value: Any = result
        for key in field.split("."):
            value = value.get(key, _FIELDS) if isinstance(value, dict) else _FIELDS
        if value is _FIELDS or not is_right(value):
            held = "nothing" if value is _FIELDS else f"{value!r:.40}"
            raise FileFormatError(f"{name} must have {what} as {field}, it has {held}")
    return result
