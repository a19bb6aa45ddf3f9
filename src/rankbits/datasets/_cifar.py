"""CIFAR-10 and CIFAR-100, the python batches.

A batch is a pickled dict of a matrix, whose rows are images of 3 x 1024 bytes, and of label lists.
The unpickler here knows a few names and replaces each by a class of its own that only stores its
arguments, so a file cannot call anything and NumPy's unpickling code never runs.
"""

import math
import os
import pickle
from typing import Any

import numpy as np

from rankbits._files import unreadable_files_refused
from rankbits.datasets._features import (
    Labelled,
    class_numbers,
    join_parts,
    require_same_rows,
)
from rankbits.errors import FileFormatError, InputError

Path = str | os.PathLike[str]
_SIDE = 32
_LAYOUTS = {  # first file: (training files, test file, file of names, labels, names)
    "data_batch_1": (
        tuple(f"data_batch_{number}" for number in range(1, 6)),
        "test_batch",
        "batches.meta",
        b"labels",
        b"label_names",
    ),
    "train": (("train",), "test", "meta", b"fine_labels", b"fine_label_names"),
}
_DTYPES = ("u1", "i4", "i8")


def is_cifar_folder(folder: Path) -> bool:
    """Whether a folder looks like the unpacked python version of CIFAR-10 or CIFAR-100.

    Parameters
    ----------
    folder : str or path-like
        The folder to look at. It may be missing: then the answer is False.

    Returns
    -------
    bool
        True if the folder has a file `data_batch_1` (CIFAR-10) or `train` (CIFAR-100). The files
        are not read.
    """
    return any(os.path.isfile(os.path.join(folder, first)) for first in _LAYOUTS)


def load_cifar(folder: Path) -> Labelled:
    """Images and classes of CIFAR-10 or CIFAR-100 (Krizhevsky 2009), python version, unpacked.

    Rows stand in the order of the files, images as uint8 of shape (32, 32, 3). CIFAR-100 has fine
    labels as classes and their superclasses in `coarse`.

    Parameters
    ----------
    folder : str or path-like
        The unpacked folder, which has data_batch_1 to data_batch_5 and test_batch (CIFAR-10), or
        train and test (CIFAR-100). The names of the classes are read from batches.meta or meta,
        if the folder has that file.
    """
    name = os.fspath(folder)
    first = next((key for key in _LAYOUTS if os.path.isfile(os.path.join(name, key))), None)
    if first is None:
        raise InputError(
            f"folder must hold data_batch_1 (CIFAR-10) or train (CIFAR-100), {name} holds neither; "
            "unpack the python version"
        )
    training, test, meta, label_key, names_key = _LAYOUTS[first]
    batches = [_batch(os.path.join(name, file), label_key) for file in (*training, test)]
    names = _names(os.path.join(name, meta), names_key)
    x, y, coarse = zip(*batches, strict=True)
    return join_parts(
        name,
        (np.concatenate(x[:-1]), x[-1]),
        (np.concatenate(y[:-1]), y[-1]),
        names,
        _superclasses(name, np.concatenate(y), coarse),
    )


def _batch(file: str, label_key: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Images, classes, and superclasses if the batch has them."""
    batch = read_batch(file)
    pixels, labels = batch.get(b"data"), batch.get(label_key)
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2:
        raise FileFormatError(f"{file} must have data as bytes of shape (n, 3072), it does not")
    if pixels.shape[1] != 3 * _SIDE * _SIDE:
        raise FileFormatError(f"{file} must have rows of 3072 bytes, got {pixels.shape[1]}")
    images = pixels.reshape(-1, 3, _SIDE, _SIDE).transpose(0, 2, 3, 1)
    classes = _labels(file, label_key.decode(), labels, len(images))
    coarse = batch.get(b"coarse_labels")
    if coarse is None:
        return images, classes, None
    return images, classes, _labels(file, "coarse_labels", coarse, len(images))


def _labels(file: str, key: str, labels: Any, n_rows: int) -> np.ndarray:
    is_list = isinstance(labels, list) and all(type(label) is int for label in labels)
    array = np.array(labels, np.int64) if is_list else labels
    if not isinstance(array, np.ndarray):
        raise FileFormatError(f"{file} must have {key} as a list of class numbers, it does not")
    classes = class_numbers(file, {key: array}, key)
    require_same_rows(file, "data", n_rows, key, len(classes))
    return classes


def _names(file: str, key: bytes) -> tuple[str, ...]:
    """Names of the classes; none if the folder has no such file."""
    if not os.path.isfile(file):
        return ()
    names = read_batch(file).get(key)
    if not isinstance(names, list) or not all(isinstance(name, bytes) for name in names):
        raise FileFormatError(f"{file} must have {key.decode()} as a list of names, it does not")
    return tuple(name.decode("utf-8", "replace") for name in names)


def _superclasses(name: str, fine: np.ndarray, coarse: tuple[Any, ...]) -> np.ndarray | None:
    """The one superclass of each class, or None where the batches have none."""
    if any(part is None for part in coarse):
        return None
    table = np.zeros(int(fine.max(initial=-1)) + 1, np.int64)
    superclasses = np.concatenate(coarse)
    table[fine] = superclasses
    if not np.array_equal(table[fine], superclasses):
        raise FileFormatError(f"{name} must have one superclass per class, a class has several")
    return table


def read_batch(file: str) -> dict[bytes, Any]:
    """The dict of a pickled batch: its keys as bytes, its arrays as NumPy's."""
    with unreadable_files_refused(file, "pickled batch"), open(file, "rb") as stream:
        content = _BatchUnpickler(stream, encoding="bytes").load()
        if not isinstance(content, dict):
            raise FileFormatError(f"{file} must be a pickled dict, got {type(content).__name__}")
        return {
            key.encode() if isinstance(key, str) else key: _plain(value)
            for key, value in content.items()
        }


def _plain(value: Any) -> Any:
    """Arrays as NumPy's, strings of Python 3 as the bytes that Python 2 wrote."""
    if isinstance(value, _Array):
        return value.array()
    if isinstance(value, list):
        return [item.encode() if isinstance(item, str) else item for item in value]
    return value


class _Dtype:
    """Stands for numpy.dtype: a name, and a byte order that comes later."""

    def __init__(self, name: Any, *_: Any) -> None:
        self.name, self.order = name, "|"

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]

    def dtype(self) -> np.dtype:
        name, order = (x.decode() if isinstance(x, bytes) else x for x in (self.name, self.order))
        if name not in _DTYPES or order not in ("|", "<", ">", "="):
            raise ValueError(f"a batch may hold bytes and integers, got the dtype {name!r}")
        return np.dtype(f"{order}{name}")


class _Array:
    """Stands for numpy.ndarray: a shape, a dtype and bytes."""

    def __init__(self, *_: Any) -> None:
        self.shape: Any = ()
        self.dtype, self.is_fortran, self.raw = _Dtype("u1"), False, b""

    def __setstate__(self, state: Any) -> None:
        _, self.shape, self.dtype, self.is_fortran, self.raw = state

    def array(self) -> np.ndarray:
        dtype, shape = self.dtype.dtype(), tuple(self.shape)
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(self.raw):
            raise ValueError(f"an array of shape {shape} does not have {len(self.raw)} bytes")
        flat = np.frombuffer(self.raw, dtype)
        return flat.reshape(shape, order="F" if self.is_fortran else "C")


class _BatchUnpickler(pickle._Unpickler):  # the one in C prints messages about damaged files
    """Plain values, and arrays through the stand-ins; any other name is refused."""

    def find_class(self, module: str, name: str) -> Any:
        known = {
            ("numpy", "dtype"): _Dtype,
            ("numpy", "ndarray"): _Array,
            ("multiarray", "_reconstruct"): self._reconstruct,
            ("numeric", "_frombuffer"): self._from_buffer,
            ("_codecs", "encode"): self._encode,
        }
        where = module
        for package in ("numpy.core.", "numpy._core."):
            where = where.removeprefix(package)
        is_short = where == module and module in ("multiarray", "numeric")
        if is_short or (where, name) not in known:
            raise ValueError(f"a batch holds plain data, this one asks for {module}.{name}")
        return known[where, name]

    def _reconstruct(self, *_: Any) -> _Array:
        return _Array()

    def _from_buffer(self, raw: Any, dtype: Any, shape: Any, order: Any) -> _Array:
        """Arrays as protocol 5 writes them."""
        array = _Array()
        array.__setstate__((1, shape, dtype, order in ("F", b"F"), bytes(raw)))
        return array

    def _encode(self, text: Any, encoding: Any) -> bytes:
        """Bytes as Python 3 writes them by protocol 2."""
        if encoding not in ("latin1", b"latin1"):
            raise ValueError(f"a batch has bytes as latin1, got {encoding!r:.40}")
        return text.encode("latin1") if isinstance(text, str) else bytes(text)
