"""The labels in y: class labels or multi-hot tags, checked against the rows of X.

Whatever is wrong with y is said here, whichever method was given it. A method that ignores y still
refuses one of another length than X: it was meant for other rows.
"""

from typing import Any

import numpy as np

from rankbits import _check
from rankbits.affinity import Affinity
from rankbits.errors import InputError

UNLABELLED = -1  # in y, as scikit-learn's semi-supervised methods have it
_BLOCK_CELLS = 1 << 20
_FORMS = (
    "y must be class labels of shape (n,), multi-hot tags of shape (n, L), or an object from "
    "rankbits.affinity over (X, X)"
)


def check_length(y: Any, n_rows: int) -> None:
    """Refuse y that does not speak of exactly the rows of X; None speaks of none."""
    if y is None:
        return
    if isinstance(y, Affinity):
        if y.shape != (n_rows, n_rows):
            raise InputError(
                f"y must be an affinity over (X, X), of shape ({n_rows}, {n_rows}), got shape "
                f"{y.shape}; an affinity of queries and a database is for rankbits.evaluate"
            )
        return
    labels = _check.array("y", y)
    if labels.ndim == 0:
        raise InputError(f"{_FORMS}, got {_check.describe(y)}")
    if len(labels) != n_rows:
        raise InputError(
            f"y must have one label for each row of X, got {len(labels)} labels for {n_rows} rows"
        )


def read_labels(y: Any) -> np.ndarray:
    """Class labels (n,) or multi-hot tags (n, L) as an array of that kind.

    >>> read_labels([["a", "b"], ["c", "d"]])
    Traceback (most recent call last):
    ...
    rankbits.errors.InputError: y of shape (2, 2) must be multi-hot tags of 0 and 1, got <U1 of \
shape (2, 2); class labels have shape (n,)
    """
    labels = _check.array("y", y)
    if labels.ndim == 1:
        return _read_classes(labels)
    if labels.ndim == 2:
        return _read_tags(labels)
    raise InputError(f"{_FORMS}, got {_check.describe(labels)}")


def find_labelled(classes: np.ndarray) -> np.ndarray:
    """Which rows have a class label, for methods that learn from rows without one too.

    >>> find_labelled(np.array([3, -1, 0])).tolist(), find_labelled(np.array(["-1"])).tolist()
    ([True, False, True], [True])
    """
    if classes.dtype.kind != "i":
        return np.ones(len(classes), np.bool_)
    is_labelled: np.ndarray = classes != UNLABELLED
    return is_labelled


def _read_classes(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            raise InputError("y must be class labels, got NaN or infinity among them")
        if not (y == np.round(y)).all():
            raise InputError(
                "y must be class labels: integers or strings, got numbers with fractions "
                f"({y.dtype}); a regression target cannot be used"
            )
        y = y.astype(np.int64)
    for kind, dtype in ((str, np.str_), (int | np.integer, np.int64)):
        if y.dtype == object and all(isinstance(label, kind) for label in y):
            y = y.astype(dtype)
    if y.dtype.kind not in "biuUS":
        raise InputError(f"y must be class labels: integers or strings, got {_check.describe(y)}")
    return y


def _read_tags(y: np.ndarray) -> np.ndarray:
    n_rows, n_tags = y.shape
    if n_tags == 0:
        raise InputError(f"y must have at least two tags, got none: its shape is {y.shape}")
    if n_tags == 1:
        raise InputError(
            f"y is a column of shape ({n_rows}, 1); class labels have shape (n,): pass y.ravel()"
        )
    if y.dtype.kind not in "biuf":
        raise InputError(
            f"y of shape {y.shape} must be multi-hot tags of 0 and 1, got {_check.describe(y)}; "
            "class labels have shape (n,)"
        )
    other = _first_other_value(y)
    if other is not None:
        hint = "class labels have shape (n,)"
        if n_rows == n_tags:
            hint = "for a matrix of levels over (X, X) pass rankbits.affinity.levels(y)"
        raise InputError(
            f"y of shape {y.shape} must be multi-hot tags of 0 and 1, got the value {other}; {hint}"
        )
    return y


def _first_other_value(y: np.ndarray) -> Any:
    """The first value that is neither 0 nor 1, or None; y may be a large file, read in blocks."""
    n_rows = max(1, _BLOCK_CELLS // y.shape[1])
    for start in range(0, len(y), n_rows):
        block = y[start : start + n_rows]
        is_other = (block != 0) & (block != 1)
        if is_other.any():
            return block[is_other][0]
    return None
