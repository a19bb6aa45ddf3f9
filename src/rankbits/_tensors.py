"""Arrays by name in the layout of safetensors, in a file or in the body of a request.

It begins with the length of its header, 8 bytes, little-endian. The header is a JSON object: the
type, shape and place of each array by name, and texts by name under "__metadata__". The bytes of
all arrays follow. Nothing in it is ever executed, and nothing is mapped: a file that others cut
while it is read is an error.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from rankbits._check import describe_names
from rankbits._files import unreadable_files_refused
from rankbits._json import parse_json
from rankbits.errors import FileFormatError, InputError

METADATA = "__metadata__"
_TYPES = {
    "BOOL": "|b1",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "I8": "|i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
    "U8": "|u1",
    "U16": "<u2",
    "U32": "<u4",
    "U64": "<u8",
}
_NAMES = {np.dtype(dtype): name for name, dtype in _TYPES.items()}
_LENGTH = 8  # bytes that say how long the header is
_MOST_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class Entry:
    """An array in a header: its type, its shape, and where it lies in the bytes that follow."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int

    def to_array(self, data: Any) -> np.ndarray:
        """The array of the bytes from start to stop, not copied."""
        if not len(data):
            return np.empty(self.shape, self.dtype)
        return np.frombuffer(data, self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class Header:
    """What a header says.

    Attributes
    ----------
    entries : arrays by name
    texts : metadata by name
    n_bytes : where the bytes of the arrays begin
    """

    entries: Mapping[str, Entry]
    texts: Mapping[str, str]
    n_bytes: int


def describe(arrays: Mapping[str, np.ndarray], texts: Mapping[str, str] | None = None) -> bytes:
    """The header of arrays that follow it one after the other."""
    header: dict[str, Any] = {METADATA: dict(texts)} if texts else {}
    start = 0
    for name, array in arrays.items():
        dtype = array.dtype.newbyteorder("<")
        if dtype not in _NAMES:
            raise InputError(f"{name} must be of a type among {', '.join(_TYPES)}, got {dtype}")
        place = [start, start + array.nbytes]
        header[name] = {"dtype": _NAMES[dtype], "shape": list(array.shape), "data_offsets": place}
        start += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that arrays begin at a multiple of their size
    return len(text).to_bytes(_LENGTH, "little") + text


@dataclass(frozen=True)
class HeaderLimits:
    """What a header may have: bytes, and values of its JSON."""

    n_bytes: int
    n_values: int


OF_FILES = HeaderLimits(4 << 20, 400_000)  # an array takes about a hundred bytes
OF_BODIES = HeaderLimits(1 << 20, 1 << 15)  # read while other requests wait


def read_header(
    file: IO[bytes], n_bytes: int, what: str = "body", limits: HeaderLimits = OF_FILES
) -> Header:
    """The header at the beginning of so many bytes; whatever does not fit is an InputError.

    Parameters
    ----------
    file : open file or body, at its beginning
    n_bytes : size of it
    what : what messages call it
    limits : what the header may have
    """
    start = file.read(_LENGTH)
    length = int.from_bytes(start, "little")
    if len(start) < _LENGTH or length > min(n_bytes - _LENGTH, limits.n_bytes):
        raise InputError(f"{what} must begin with 8 bytes, the length of the header that follows")
    header = parse_json(f"the header of {what}", file.read(length), limits.n_values)
    if not isinstance(header, dict):
        raise InputError(f"{what} must have a JSON object as its header")
    texts = header.pop(METADATA, {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise InputError(f"{METADATA} of the header must be an object of strings")
    n_data = n_bytes - _LENGTH - length
    entries = {name: _entry(name, entry, n_data, what) for name, entry in header.items()}
    return Header(entries, texts, _LENGTH + length)


class TensorFile:
    """A .safetensors file, whose arrays are read one by one.

    Parameters
    ----------
    path : the file

    Attributes
    ----------
    names : names of its arrays
    texts : its metadata
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        with unreadable_files_refused(self._path, ".safetensors"), open(self._path, "rb") as file:
            try:
                self._header = read_header(file, os.fstat(file.fileno()).st_size, "it")
            except InputError as error:
                raise ValueError(str(error)) from None
        self.names = tuple(self._header.entries)
        self.texts = self._header.texts

    def read(self, name: str) -> np.ndarray:
        """One of the arrays."""
        entry = self._header.entries[name]
        with open(self._path, "rb") as file:
            file.seek(self._header.n_bytes + entry.start)
            array = np.fromfile(file, entry.dtype, math.prod(entry.shape))
        if array.size < math.prod(entry.shape):
            raise FileFormatError(f"{self._path} became shorter while {name} was read from it")
        return array.reshape(entry.shape)


def _entry(key: str, entry: Any, n_bytes: int, what: str) -> Entry:
    """One entry of a header, which must lie within the bytes that follow it."""
    name = describe_names([key])
    try:
        dtype, shape = np.dtype(_TYPES[entry["dtype"]]), entry["shape"]
        start, stop = entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"{name} must have a dtype among {', '.join(_TYPES)}, a shape and two data_offsets"
        ) from None
    if not (isinstance(shape, list) and len(shape) <= _MOST_DIMENSIONS):
        raise InputError(f"{name} must have a shape of at most {_MOST_DIMENSIONS} whole numbers")
    if not (all(map(_is_size, shape)) and _is_size(math.prod(size or 1 for size in shape))):
        raise InputError(f"{name} must have a shape of whole numbers that memory can hold")
    is_inside = _is_size(start) and _is_size(stop) and start <= stop <= n_bytes
    if not is_inside or stop - start != math.prod(shape) * dtype.itemsize:
        raise InputError(
            f"{name} must have data_offsets within the {what}, as long as its shape says"
        )
    return Entry(dtype, tuple(shape), start, stop)


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 48
