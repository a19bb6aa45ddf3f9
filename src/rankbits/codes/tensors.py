"""Code files of the format safetensors: a tensor `codes`, and a note in the header's metadata.

The tensor follows the header, so it can be written block by block.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np

from rankbits._tensors import TensorFile, describe
from rankbits.codes import stored
from rankbits.codes.arrow import metadata_of, parse_metadata
from rankbits.codes.note import Note
from rankbits.codes.stored import CODES, StoredCodes
from rankbits.errors import FileFormatError


def write(file: IO[bytes], note: Note, n: int, blocks: Iterable[np.ndarray]) -> None:
    """Write n codes, a block at a time."""
    shape_of_codes = np.broadcast_to(np.uint8(0), (n, note.width))
    file.write(describe({CODES: shape_of_codes}, metadata_of(note)))
    for block in stored.checked_blocks(n, note.width, blocks):
        file.write(block.data)


def read_note(path: str, key: str | None = None) -> Note | None:
    """What a file says about its codes; None if it says nothing."""
    file = TensorFile(path)
    note = _note(file, path)
    is_codes = CODES in file.names and key in (None, CODES)
    return note if note.n_bits is not None and is_codes else None


@contextmanager
def open_codes(path: str) -> Iterator[StoredCodes]:
    """The codes of a file, as one block."""
    file = TensorFile(path)
    if CODES not in file.names:
        raise FileFormatError(f"{path} holds no tensor {CODES!r}")
    packed = file.read(CODES)
    stored.require_packed(path, packed.dtype, packed.shape)
    yield StoredCodes(path, _note(file, path), packed.shape[1], iter([(None, packed)]))


def _note(file: TensorFile, path: str) -> Note:
    return parse_metadata({key.encode(): text.encode() for key, text in file.texts.items()}, path)
