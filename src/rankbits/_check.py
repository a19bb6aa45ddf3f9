"""Checks at the public door: each returns a clean value or raises one clear sentence.

Nothing here knows about codes or labels; a check says which argument it speaks of.
"""

import importlib
import operator
from difflib import get_close_matches
from types import ModuleType
from typing import Any

import numpy as np

from rankbits.errors import InputError, MissingExtraError


def describe(array: Any) -> str:
    """Dtype and shape of what came, for the second half of an error message."""
    if isinstance(array, np.ndarray):
        return f"{array.dtype} of shape {array.shape}"
    return f"{type(array).__name__} {array!r:.60}"


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """An integer within [low, high]; bools and floats are refused."""
    wanted = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be {wanted}, got {describe(value)}") from None
    if isinstance(value, bool | np.bool_) or number < low or (high is not None and number > high):
        raise InputError(f"{name} must be {wanted}, got {value}")
    return number


def choice(name: str, value: Any, known: tuple[str, ...]) -> str:
    """One of the known words; the nearest one is suggested."""
    if isinstance(value, str) and value in known:
        return value
    near = get_close_matches(str(value), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(f"{name} must be one of {', '.join(known)}; got {value!r}{hint}")


def array_2d(name: str, value: Any, columns: str = "b") -> np.ndarray:
    """A two-dimensional array with at least one row and one column."""
    array = np.asarray(value)
    if array.ndim != 2:
        raise InputError(f"{name} must have shape (n, {columns}), got {describe(array)}")
    if 0 in array.shape:
        raise InputError(f"{name} must not be empty, got {describe(array)}")
    return array


def finite(name: str, array: np.ndarray) -> None:
    """Refuse NaN and infinity, naming the first row that has one."""
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise InputError(f"{name} must be finite, got {array[row].min()} or NaN in row {row}")


def extra(module: str, needed_for: str, extra_name: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{needed_for} needs {module}; install it with: pip install 'rankbits[{extra_name}]'"
        ) from error
