"""The arrays of a model, in `model.safetensors`: what they need is known before it is taken.

A header that does not describe exactly the bytes behind it is refused before they are read, and so
is a file that is long but takes nearly nothing of the disk, since a folder of a few bytes must not
fill memory.
"""

import hashlib
import io
import os
from collections.abc import Mapping
from typing import IO

import numpy as np

from rankbits._check import extra
from rankbits._tensors import Entry, read_header
from rankbits.errors import FileFormatError, InputError

NAME = "model.safetensors"
MOST_FEATURES = 1 << 24  # numbers of a row that a saved model may read
_MOST_ARRAYS = 1 << 15
_HOLES_FROM, _LEAST_SHARE = 64 << 20, 1 / 16  # of a file's bytes that must be on the disk


def write_arrays(arrays: dict[str, np.ndarray]) -> bytes:
    """The content of a file with these arrays."""
    tensors = extra("safetensors.numpy", "saving a model", "files")
    content: bytes = tensors.save({name: as_stored(array) for name, array in arrays.items()})
    return content


def read_arrays(content: bytes, sha256: str) -> dict[str, np.ndarray]:
    """The arrays of a file by name; content with another checksum is refused."""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise FileFormatError(f"{NAME} is damaged: its checksum does not match")
    header = read_header(io.BytesIO(content), len(content), NAME)
    data = memoryview(content)[header.n_bytes :]
    return {
        name: np.array(entry.to_array(data[entry.start : entry.stop]))
        for name, entry in header.entries.items()
    }


def require_described(file: IO[bytes], status: os.stat_result) -> None:
    """Refuse a file whose header does not describe all of its bytes, and one that is empty space.

    Only the header is read; afterwards the file stands at its beginning again.
    """
    size = status.st_size
    try:
        header = read_header(file, size, NAME)
    except InputError as error:
        raise FileFormatError(f"{NAME} cannot be read: {error}") from None
    file.seek(0)
    _require_tiles(header.entries, size - header.n_bytes)
    on_disk = 512 * status.st_blocks
    if size > _HOLES_FROM and 0 < on_disk < _LEAST_SHARE * size:
        raise FileFormatError(
            f"{NAME} is {size} bytes long but takes {on_disk} of the disk: the rest of it was "
            "never written"
        )


def _require_tiles(entries: Mapping[str, Entry], n_bytes: int) -> None:
    """Refuse arrays that do not lie behind each other and fill all bytes."""
    if len(entries) > _MOST_ARRAYS:
        raise FileFormatError(f"{NAME} must have at most {_MOST_ARRAYS} arrays, got {len(entries)}")
    places = sorted((entry.start, entry.stop) for entry in entries.values())
    ends = [0, *(end for _, end in places)]
    if [begin for begin, _ in places] != ends[:-1] or ends[-1] != n_bytes:
        raise FileFormatError(
            f"{NAME} must be filled by its arrays, which lie behind each other, but they do not "
            f"fill its {n_bytes} bytes"
        )


def as_stored(array: np.ndarray) -> np.ndarray:
    """Contiguous and little-endian: safetensors writes other arrays as they lie in memory."""
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")
