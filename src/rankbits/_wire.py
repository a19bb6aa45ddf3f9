"""Arrays in one body, for batches that JSON would make slow; the layout is that of safetensors."""

import io
from collections.abc import Mapping

import numpy as np

from rankbits import _tensors

MEDIA_TYPE = "application/octet-stream"


def dump(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> bytes:
    """One body of arrays by name, and of texts by name.

    >>> arrays, texts = load(dump({"ids": np.array([[3, 1]])}, {"k": "2"}))
    >>> arrays["ids"].tolist(), texts
    ([[3, 1]], {'k': '2'})
    """
    parts = [array.astype(array.dtype.newbyteorder("<"), copy=False) for array in arrays.values()]
    return b"".join([_tensors.describe(arrays, metadata), *(part.tobytes() for part in parts)])


def load(body: bytes | bytearray) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the texts of a body; whatever does not fit is an InputError."""
    beginning = io.BytesIO(memoryview(body)[: 8 + _tensors.OF_BODIES.n_bytes])
    header = _tensors.read_header(beginning, len(body), limits=_tensors.OF_BODIES)
    data = memoryview(body)[header.n_bytes :]
    arrays = {
        name: entry.to_array(data[entry.start : entry.stop])
        for name, entry in header.entries.items()
    }
    return arrays, dict(header.texts)
