"""Features and labels of a public data set, training and test part, from one .npz file.

Two layouts are read:
    x_train, x_test, y_train, y_test    classes; optionally classes (names), fine_to_coarse
    features, labels, is_test, n_labels  tags, each row of bits packed as by `numpy.packbits`;
                                         optionally words (names)
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rankbits import _check
from rankbits._files import require_file, unreadable_files_refused
from rankbits._unpacking import require_unpackable_npz
from rankbits.datasets._formats import ZIP_MAGIC, require_magic
from rankbits.errors import FileFormatError

Path = str | os.PathLike[str]
_KEYS = ("x_train", "x_test", "y_train", "y_test", "classes", "fine_to_coarse")
_TAG_KEYS = ("features", "labels", "is_test", "n_labels", "words")


@dataclass(frozen=True, eq=False)
class Labelled:
    """All rows of a data set; those of the standard training part come first.

    Attributes
    ----------
    x : ndarray of shape (n, features) or (n, height, width, 3)
        The features of each row or, for images, their pixels as uint8.
    y : ndarray of shape (n,) or (n, L)
        The class number of each row as int64, or its multi-hot tags as uint8.
    is_test : ndarray of bool, shape (n,)
        Whether a row belongs to the standard test part.
    names : tuple of str
        Names of the classes or tags. It is empty if the file has none.
    coarse : ndarray of int64, shape (classes,), or None
        The superclass of each class.
    judgements : ndarray of int64, shape (judged pairs, 3), or None
        Row of a query, row of an item, and the level of the item for that query. A set with
        judgements has no labels: `y` then has the shape (n, 0).
    """

    x: np.ndarray
    y: np.ndarray
    is_test: np.ndarray
    names: tuple[str, ...] = ()
    coarse: np.ndarray | None = None
    judgements: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.x)


def load_features(path: Path) -> Labelled:
    """Features and labels from one .npz file; floats come as float32.

    Parameters
    ----------
    path : str or path-like
        The .npz file. It holds either the arrays x_train, x_test, y_train and y_test, with
        classes as labels, or features, labels, is_test and n_labels, with packed tags as labels.
        The names of the labels are read from `classes` or `words`, and the superclass of each
        class from `fine_to_coarse`, if the file has them.

    >>> load_features("cifar10_features.npz").x.shape  # doctest: +SKIP
    (60000, 256)
    """
    file = existing_file(path)
    arrays = read_arrays(file, _KEYS + _TAG_KEYS)
    if "x_train" in arrays:
        return _of_classes(file, arrays)
    if "features" in arrays:
        return _of_tags(file, arrays)
    raise FileFormatError(
        f"{file} must hold x_train, x_test, y_train and y_test, or features, labels, is_test and "
        "n_labels; it has neither x_train nor features"
    )


def _of_classes(file: str, arrays: Mapping[str, np.ndarray]) -> Labelled:
    require_keys(file, arrays, ("x_train", "x_test", "y_train", "y_test"))
    parts = [
        (feature_rows(file, arrays, f"x_{part}"), class_numbers(file, arrays, f"y_{part}"))
        for part in ("train", "test")
    ]
    for part, (x, y) in zip(("train", "test"), parts, strict=True):
        require_same_rows(file, f"x_{part}", len(x), f"y_{part}", len(y))
    (train_x, train_y), (test_x, test_y) = parts
    if train_x.shape[1] != test_x.shape[1]:
        raise FileFormatError(
            f"{file} must have the same features in x_train and x_test, got {train_x.shape[1]} "
            f"and {test_x.shape[1]}"
        )
    return join_parts(
        file,
        (train_x, test_x),
        (train_y, test_y),
        names_of(file, arrays, "classes"),
        _superclasses(file, arrays),
    )


def join_parts(
    file: str,
    x: tuple[np.ndarray, np.ndarray],
    y: tuple[np.ndarray, np.ndarray],
    names: tuple[str, ...],
    coarse: np.ndarray | None = None,
) -> Labelled:
    """The training part followed by the test part; if classes have names, each must have one."""
    labels = np.concatenate(y)
    for what, known in (("class names", names or None), ("superclasses", coarse)):
        if known is not None and labels.max(initial=0) >= len(known):
            raise FileFormatError(f"{file} has the class {labels.max()} and {len(known)} {what}")
    is_test = np.repeat([False, True], [len(part) for part in x])
    return Labelled(np.concatenate(x), labels, is_test, names, coarse)


def _of_tags(file: str, arrays: Mapping[str, np.ndarray]) -> Labelled:
    require_keys(file, arrays, ("features", "labels", "is_test", "n_labels"))
    x, is_test = feature_rows(file, arrays, "features"), arrays["is_test"]
    y = unpack_tags(file, "labels", arrays["labels"], arrays["n_labels"])
    require_same_rows(file, "features", len(x), "labels", len(y))
    if is_test.dtype != np.bool_ or is_test.shape != (len(x),):
        raise FileFormatError(
            f"{file} must have is_test as {len(x)} bools, got {_check.describe(is_test)}"
        )
    names = names_of(file, arrays, "words")
    if names and len(names) != y.shape[1]:
        raise FileFormatError(f"{file} has {y.shape[1]} tags and {len(names)} words")
    order = np.argsort(is_test, kind="stable")
    return Labelled(x[order], y[order], is_test[order], names)


def unpack_tags(file: str, key: str, packed: np.ndarray, n_labels: np.ndarray) -> np.ndarray:
    """Multi-hot rows of uint8 from rows of packed bits."""
    if n_labels.shape != () or n_labels.dtype.kind not in "iu":
        raise FileFormatError(
            f"{file} must have its number of tags as n_labels, got {_check.describe(n_labels)}"
        )
    n_tags = int(n_labels)
    bytes_wide = -(-n_tags // 8)
    if packed.dtype != np.uint8 or packed.shape[1:] != (bytes_wide,) or n_tags < 1:
        raise FileFormatError(
            f"{file} must have {key} as uint8 of shape (n, {bytes_wide}), the packed bits of "
            f"{n_tags} tags, got {_check.describe(packed)}"
        )
    return np.unpackbits(packed, axis=1, count=n_tags)


def read_arrays(file: str, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Those of the arrays that the .npz file has; nothing else of it is read."""
    require_magic(file, ZIP_MAGIC, ".npz")
    with (
        unreadable_files_refused(file, ".npz"),
        open(file, "rb") as stream,
        np.load(stream, allow_pickle=False) as stored,
    ):
        require_unpackable_npz(file, stored.zip, keys)
        arrays = {key: stored[key] for key in keys if key in stored}
    for key, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise FileFormatError(f"{file} must hold arrays, its member {key!r} is not a .npy")
    return arrays


def existing_file(path: Path) -> str:
    """The path of a file that is there and not empty."""
    file = require_file(path, "a file")
    if os.path.getsize(file) == 0:
        raise FileFormatError(f"{file} is empty, 0 bytes")
    return file


def require_keys(file: str, arrays: Mapping[str, np.ndarray], keys: tuple[str, ...]) -> None:
    """Refuse a file that lacks one of the arrays."""
    missing = [key for key in keys if key not in arrays]
    if missing:
        raise FileFormatError(f"{file} must hold {', '.join(keys)}; it has no {missing[0]}")


def require_same_rows(file: str, first: str, n_first: int, second: str, n_second: int) -> None:
    """Refuse two arrays that belong together and have different numbers of rows."""
    if n_first != n_second:
        raise FileFormatError(
            f"{file} must have as many rows in {first} as in {second}, got {n_first} and {n_second}"
        )


def class_numbers(file: str, arrays: Mapping[str, np.ndarray], key: str) -> np.ndarray:
    """Class labels as int64."""
    labels = arrays[key]
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or labels.min(initial=0) < 0:
        raise FileFormatError(
            f"{file} must have {key} as class numbers of shape (n,) from 0, got "
            f"{_check.describe(labels)}"
        )
    return labels.astype(np.int64)


def names_of(file: str, arrays: Mapping[str, np.ndarray], key: str) -> tuple[str, ...]:
    """Names of classes or tags; none if the file has no such array."""
    names = arrays.get(key)
    if names is None:
        return ()
    if names.ndim != 1 or names.dtype.kind != "U":
        raise FileFormatError(f"{file} must have {key} as strings, got {_check.describe(names)}")
    return tuple(names.tolist())


def _superclasses(file: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    has_them = "fine_to_coarse" in arrays
    return class_numbers(file, arrays, "fine_to_coarse") if has_them else None


def without_labels(n_rows: int) -> np.ndarray:
    """The labels of rows that have none: no columns."""
    return np.zeros((n_rows, 0), np.uint8)


def feature_rows(file: str, arrays: Mapping[str, np.ndarray], key: str) -> np.ndarray:
    """Rows of finite numbers; floats as float32, which methods compute in."""
    rows = arrays[key]
    if rows.ndim != 2 or 0 in rows.shape or rows.dtype.kind not in "iuf":
        raise FileFormatError(
            f"{file} must have {key} as numbers of shape (n, features), got {_check.describe(rows)}"
        )
    with np.errstate(over="ignore"):
        rows = rows.astype(np.float32) if rows.dtype.kind == "f" else rows
    if not np.isfinite(rows).all():
        raise FileFormatError(f"{file} must have finite numbers in {key}, it has NaN or infinity")
    return rows
