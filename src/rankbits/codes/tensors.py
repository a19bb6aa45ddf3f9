"""Code files of the format safetensors: a tensor `codes`, and a note in the header's metadata.

A file is the length of its header (8 bytes, little-endian), the header in JSON, and the tensors one
after the other, so it can be written block by block.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from rankbits import _check
from rankbits._files import unreadable_files_refused
from rankbits.codes import stored
from rankbits.codes.arrow import metadata_of, parse_metadata
from rankbits.codes.note import Note
from rankbits.codes.stored import CODES, StoredCodes

_ALIGNMENT = 8


def write(file: IO[bytes], note: Note, n: int, blocks: Iterable[np.ndarray]) -> None:
    """Write n codes, a block at a time."""
    width = note.width
    tensor = {"dtype": "U8", "shape": [n, width], "data_offsets": [0, n * width]}
    header = json.dumps({"__metadata__": metadata_of(note), CODES: tensor}).encode()
    header = header.ljust(-(-len(header) // _ALIGNMENT) * _ALIGNMENT)
    file.write(len(header).to_bytes(8, "little") + header)
    for block in stored.checked_blocks(n, width, blocks):
        file.write(block.data)


def read_note(path: str, key: str | None = None) -> Note | None:
    """What a file says about its codes; None if it says nothing."""
    with _opened(path) as tensors:
        note = _note(tensors, path)
        is_codes = CODES in tensors.keys() and key in (None, CODES)  # noqa: SIM118  no mapping
        return note if note.n_bits is not None and is_codes else None


@contextmanager
def open_codes(path: str) -> Iterator[StoredCodes]:
    """The codes of a file, as one block."""
    with _opened(path) as tensors:
        packed = np.asarray(tensors.get_tensor(CODES))
        stored.require_packed(path, packed.dtype, packed.shape)
        yield StoredCodes(path, _note(tensors, path), packed.shape[1], iter([(None, packed)]))


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    safetensors = _check.extra("safetensors", "reading .safetensors", "files")
    with (
        unreadable_files_refused(path, ".safetensors"),
        safetensors.safe_open(path, framework="np") as tensors,
    ):
        yield tensors


def _note(tensors: Any, path: str) -> Note:
    metadata = tensors.metadata() or {}
    return parse_metadata({key.encode(): text.encode() for key, text in metadata.items()}, path)
