"""Features of a public data set with its labels and its own two parts, out of one .npz file.

Two layouts are read:
    x_train, x_test, y_train, y_test    classes; optionally classes (names), fine_to_coarse
    features, labels, is_test, n_labels  tags, a row of bits packed as by `numpy.packbits`;
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
    """All rows of a data set, those of the standard training part first.

    Attributes
    ----------
    x : ndarray, shape (n, features) or, of images, uint8 of shape (n, height, width, 3)
    y : ndarray, class numbers of shape (n,), int64, or multi-hot tags of shape (n, L), uint8
    is_test : ndarray of bool, shape (n,)
        Whether a row belongs to the standard test part.
    names : names of the classes or tags; empty if the file has none
    coarse : ndarray of int64, shape (classes,), or None
        The superclass of each class.
    """

    x: np.ndarray
    y: np.ndarray
    is_test: np.ndarray
    names: tuple[str, ...] = ()
    coarse: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.x)


def load_features(path: Path) -> Labelled:
    """Features of either layout; floats come as float32.

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
        (_numbers(file, arrays, f"x_{part}"), class_numbers(file, arrays, f"y_{part}"))
        for part in ("train", "test")
    ]
    for part, (x, y) in zip(("train", "test"), parts, strict=True):
        require_step(file, f"x_{part}", len(x), f"y_{part}", len(y))
    (train_x, train_y), (test_x, test_y) = parts
    if train_x.shape[1] != test_x.shape[1]:
        raise FileFormatError(
            f"{file} must have the same features in x_train and x_test, got {train_x.shape[1]} "
            f"and {test_x.shape[1]}"
        )
    return joined(
        file,
        (train_x, test_x),
        (train_y, test_y),
        names_of(file, arrays, "classes"),
        _superclasses(file, arrays),
    )


def joined(
    file: str,
    x: tuple[np.ndarray, np.ndarray],
    y: tuple[np.ndarray, np.ndarray],
    names: tuple[str, ...],
    coarse: np.ndarray | None = None,
) -> Labelled:
    """The training part and, after it, the test part; every class must have its name, if any."""
    labels = np.concatenate(y)
    for what, known in (("class names", names or None), ("superclasses", coarse)):
        if known is not None and labels.max(initial=0) >= len(known):
            raise FileFormatError(f"{file} has the class {labels.max()} and {len(known)} {what}")
    is_test = np.repeat([False, True], [len(part) for part in x])
    return Labelled(np.concatenate(x), labels, is_test, names, coarse)


def _of_tags(file: str, arrays: Mapping[str, np.ndarray]) -> Labelled:
    require_keys(file, arrays, ("features", "labels", "is_test", "n_labels"))
    x, is_test = _numbers(file, arrays, "features"), arrays["is_test"]
    y = unpacked(file, "labels", arrays["labels"], arrays["n_labels"])
    require_step(file, "features", len(x), "labels", len(y))
    if is_test.dtype != np.bool_ or is_test.shape != (len(x),):
        raise FileFormatError(
            f"{file} must have is_test as {len(x)} bools, got {_check.describe(is_test)}"
        )
    names = names_of(file, arrays, "words")
    if names and len(names) != y.shape[1]:
        raise FileFormatError(f"{file} has {y.shape[1]} tags and {len(names)} words")
    order = np.argsort(is_test, kind="stable")
    return Labelled(x[order], y[order], is_test[order], names)


def unpacked(file: str, key: str, packed: np.ndarray, n_labels: np.ndarray) -> np.ndarray:
    """Multi-hot rows of uint8 from rows of packed bits."""
    if n_labels.shape != () or n_labels.dtype.kind not in "iu":
        raise FileFormatError(f"{file} must count its tags, got {_check.describe(n_labels)}")
    wanted = int(n_labels)
    bytes_wide = -(-wanted // 8)
    if packed.dtype != np.uint8 or packed.shape[1:] != (bytes_wide,) or wanted < 1:
        raise FileFormatError(
            f"{file} must have {key} as uint8 of shape (n, {bytes_wide}), the packed bits of "
            f"{wanted} tags, got {_check.describe(packed)}"
        )
    return np.unpackbits(packed, axis=1, count=wanted)


def read_arrays(file: str, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Those of the arrays that the .npz file has; nothing else of it is read."""
    require_magic(file, ZIP_MAGIC, ".npz")
    with (
        unreadable_files_refused(file, ".npz"),
        open(file, "rb") as stream,
        np.load(stream, allow_pickle=False) as stored,
    ):
        require_unpackable_npz(file, stored.zip, keys)
        found = {key: stored[key] for key in keys if key in stored}
    for key, array in found.items():
        if not isinstance(array, np.ndarray):
            raise FileFormatError(f"{file} must hold arrays, its member {key!r} is not a .npy")
    return found


def existing_file(path: Path) -> str:
    """The path of a file that is there and not empty."""
    file = require_file(path, "a file")
    if os.path.getsize(file) == 0:
        raise FileFormatError(f"{file} is empty, 0 bytes")
    return file


def require_keys(file: str, arrays: Mapping[str, np.ndarray], wanted: tuple[str, ...]) -> None:
    missing = [key for key in wanted if key not in arrays]
    if missing:
        raise FileFormatError(f"{file} must hold {', '.join(wanted)}; it has no {missing[0]}")


def require_step(file: str, mine: str, n_mine: int, theirs: str, n_theirs: int) -> None:
    if n_mine != n_theirs:
        raise FileFormatError(
            f"{file} must have {mine} and {theirs} in step, got {n_mine} and {n_theirs} rows"
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
    """Names if the file has them."""
    names = arrays.get(key)
    if names is None:
        return ()
    if names.ndim != 1 or names.dtype.kind != "U":
        raise FileFormatError(f"{file} must have {key} as strings, got {_check.describe(names)}")
    return tuple(names.tolist())


def _superclasses(file: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    has_them = "fine_to_coarse" in arrays
    return class_numbers(file, arrays, "fine_to_coarse") if has_them else None


def _numbers(file: str, arrays: Mapping[str, np.ndarray], key: str) -> np.ndarray:
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
