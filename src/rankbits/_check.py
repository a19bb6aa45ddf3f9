"""Checks of arguments: each returns a valid value or raises an error of one sentence.

Nothing here knows about codes or labels; the first argument of a check is the name for its message.
"""

import importlib
import math
import operator
from collections.abc import Iterable
from difflib import get_close_matches
from types import ModuleType
from typing import Any

import numpy as np

from rankbits.errors import InputError, MissingExtraError

_SHOWN_NAMES = 12


def describe(array: Any) -> str:
    """Dtype and shape of an array, or type and value of anything else, for an error message."""
    if isinstance(array, np.ndarray):
        return f"{array.dtype} of shape {array.shape}"
    return f"{type(array).__name__} {array!r:.60}"


def describe_names(names: Iterable[str]) -> str:
    """Some names of a file for an error message: the first of them, short and in one line.

    >>> describe_names(["mean", "planes"])
    'mean, planes'
    """
    known = list(names)
    words = [name if name.isprintable() else ascii(name) for name in known[:_SHOWN_NAMES]]
    text = ", ".join(f"{word:.60}" for word in words)
    n_others = len(known) - _SHOWN_NAMES
    return f"{text} and {n_others} more" if n_others > 0 else text


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """A whole number within [low, high]; bools and floats are refused."""
    if type(value) is int and low <= value and (high is None or value <= high):
        return value  # the usual case, made fast for searches of one query at a time
    expected = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be {expected}, got {describe(value)}") from None
    if isinstance(value, bool | np.bool_) or number < low or (high is not None and number > high):
        raise InputError(f"{name} must be {expected}, got {value!s:.60}")
    return number


def number(
    name: str, value: Any, low: float = 0.0, high: float = math.inf, *, closed: bool = True
) -> float:
    """A finite number of at least `low`, or above it if not closed, and below `high`; no bools."""
    if high < math.inf:
        expected = f"a number {'from' if closed else 'above'} {low:g} and below {high:g}"
    else:
        bound = f", {low:g} or more" if closed else f" above {low:g}"
        expected = f"a finite number{bound}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        raise InputError(f"{name} must be {expected}, got {describe(value)}")
    if not low <= value < high or (value == low and not closed):
        raise InputError(f"{name} must be {expected}, got {value!s:.60}")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """True or False, as Python's or NumPy's bool."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {describe(value)}")
    return bool(value)


def choice(name: str, value: Any, known: tuple[str, ...]) -> str:
    """One of the known words; the nearest one is suggested."""
    if isinstance(value, str) and value in known:
        return value
    near = get_close_matches(str(value), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(f"{name} must be one of {', '.join(known)}; got {value!r:.60}{hint}")


def array(name: str, value: Any) -> np.ndarray:
    """The value as a NumPy array; rows of unequal length are refused."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of one shape: {error}") from None


def array_2d(name: str, value: Any, columns: str = "b") -> np.ndarray:
    """A two-dimensional array with at least one row and one column."""
    table = array(name, value)
    if table.ndim != 2:
        raise InputError(f"{name} must have shape (n, {columns}), got {describe(table)}")
    if 0 in table.shape:
        raise InputError(f"{name} must not be empty, got {describe(table)}")
    return table


def finite(name: str, values: np.ndarray) -> None:
    """Refuse NaN and infinity, naming the first row that has one."""
    if not np.isfinite(values).all():
        first = tuple(np.argwhere(~np.isfinite(values))[0])
        raise InputError(f"{name} must be finite, got {values[first]} in row {first[0]}")


def extra(module: str, needed_for: str, extra_name: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{needed_for} needs {module}; install it with: pip install 'rankbits[{extra_name}]'"
        ) from error
