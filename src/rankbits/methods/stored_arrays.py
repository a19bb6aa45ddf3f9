"""The arrays of a model, in `model.safetensors`: what they need is known before it is taken.

The file begins with a header, which says the type, shape and place of every array. A header that
does not describe exactly the bytes behind it is refused before they are read, and so is a file that
is long but takes nearly nothing of the disk, since a folder of a few bytes must not fill memory.
"""

import hashlib
import math
import os
from typing import IO, Any

import numpy as np

from rankbits._check import describe_names, extra
from rankbits._files import READ_ERRORS, one_line
from rankbits.errors import FileFormatError
from rankbits.methods.json_values import parse_json

NAME = "model.safetensors"
MOST_FEATURES = 1 << 24  # numbers of a row that a saved model may read
_MOST_HEADER = 4 << 20  # bytes; an array takes about a hundred of them
_MOST_ARRAYS = 1 << 15
_MOST_AXES = 8
_HOLES_FROM, _LEAST_SHARE = 64 << 20, 1 / 16  # of a file's bytes that must be on the disk
_N_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1,
}  # fmt: skip  # of a number, by the types that methods have


def write_arrays(arrays: dict[str, np.ndarray]) -> bytes:
    """The content of a file with these arrays."""
    tensors = extra("safetensors.numpy", "saving a model", "files")
    content: bytes = tensors.save({name: as_stored(array) for name, array in arrays.items()})
    return content


def read_arrays(content: bytes, sha256: str) -> dict[str, np.ndarray]:
    """The arrays of a file by name; content with another checksum is refused."""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise FileFormatError(f"{NAME} is damaged: its checksum does not match")
    tensors = extra("safetensors.numpy", "loading a model", "files")
    from safetensors import SafetensorError

    try:
        return dict(tensors.load(content))
    except (SafetensorError, *READ_ERRORS) as error:
        raise FileFormatError(f"{NAME} cannot be read: {one_line(error)[:100]}") from None


def require_described(file: IO[bytes], status: os.stat_result) -> None:
    """Refuse a file whose header does not describe all of its bytes, and one that is empty space.

    Only the header is read; afterwards the file stands at its beginning again.
    """
    size = status.st_size
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(size - 8, _MOST_HEADER):
        raise FileFormatError(
            f"{NAME} must begin with the length of its header, at most {_MOST_HEADER} and within "
            f"its {size} bytes, got {length}"
        )
    header = parse_json(NAME, file.read(length))
    file.seek(0)
    if not isinstance(header, dict):
        raise FileFormatError(f"the header of {NAME} must name arrays, got {header!r:.40}")
    _require_tiles(header, size - 8 - length)
    on_disk = 512 * status.st_blocks
    if size > _HOLES_FROM and 0 < on_disk < _LEAST_SHARE * size:
        raise FileFormatError(
            f"{NAME} is {size} bytes long but takes {on_disk} of the disk: the rest of it was "
            "never written"
        )


def _require_tiles(header: dict[str, Any], n_bytes: int) -> None:
    """Refuse arrays that do not lie behind each other and fill all bytes."""
    header.pop("__metadata__", None)
    if len(header) > _MOST_ARRAYS:
        raise FileFormatError(f"{NAME} must have at most {_MOST_ARRAYS} arrays, got {len(header)}")
    places = sorted(_place_of(name, entry) for name, entry in header.items())
    ends = [0, *(end for _, end in places)]
    if [begin for begin, _ in places] != ends[:-1] or ends[-1] != n_bytes:
        raise FileFormatError(
            f"{NAME} must be filled by its arrays, which lie behind each other, but they do not "
            f"fill its {n_bytes} bytes"
        )


def _place_of(name: str, entry: Any) -> tuple[int, int]:
    """Where an array begins and ends, which agrees with its type and shape."""
    described = entry if isinstance(entry, dict) else {}
    shape, place = _sizes(described.get("shape")), _sizes(described.get("data_offsets"))
    dtype = described.get("dtype")
    if shape is None or place is None or len(place) != 2 or dtype not in tuple(_N_BYTES):
        raise FileFormatError(
            f"{NAME} must say the type, shape and place of each array, it says {entry!r:.60} of "
            f"{describe_names([name])}"
        )
    begin, end = place
    if end - begin != _N_BYTES[dtype] * math.prod(shape):
        raise FileFormatError(
            f"{NAME} must have the bytes of each array, but those of {describe_names([name])} are "
            f"not {dtype} of shape {shape!r:.60}"
        )
    return begin, end


def _sizes(values: Any) -> list[int] | None:
    """A short list of sizes, None for anything else."""
    if not isinstance(values, list) or len(values) > _MOST_AXES:
        return None
    is_plain = all(type(value) is int and 0 <= value < 1 << 63 for value in values)
    return values if is_plain else None


def as_stored(array: np.ndarray) -> np.ndarray:
    """Contiguous and little-endian: safetensors writes other arrays as they lie in memory."""
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")
