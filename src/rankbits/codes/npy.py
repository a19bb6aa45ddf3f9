"""Code files of NumPy's format .npy: the packed bytes, and a trailer that says what they are.

Readers of .npy ignore what follows the array. The file has version 2.0, which NumPy itself gives to
huge headers only: in such a file a trailer must follow, so one that was cut off is noticed. The
trailer is lines of `rankbits:KEY=VALUE`, of which n_bits is the last.
"""

import io
import re
from collections.abc import Iterable
from typing import IO, Any

import numpy as np

from rankbits._files import READ_ERRORS, one_line
from rankbits._mapped import map_npy
from rankbits.codes.note import Note
from rankbits.codes.stored import checked_blocks, require_packed
from rankbits.errors import FileFormatError

_VERSION = (2, 0)
_TRAILER = re.compile(
    rb"(?:rankbits:model=([!-~]{1,128})\n)?(?:rankbits:side=([a-z]{1,8})\n)?"
    rb"rankbits:n_bits=([0-9]{1,8})\n"
)
_LONGEST = 256  # bytes of a trailer


def frame(n: int, note: Note) -> tuple[bytes, bytes]:
    """What stands before and after the codes of n rows."""
    header = io.BytesIO()
    np.lib.format.write_array_header_2_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (n, note.width)}
    )
    known = {"model": note.model, "side": note.side, "n_bits": note.n_bits}
    lines = [f"rankbits:{key}={value}\n" for key, value in known.items() if value is not None]
    return header.getvalue(), "".join(lines).encode()


def write(file: IO[bytes], note: Note, n: int, blocks: Iterable[np.ndarray]) -> None:
    """Write n codes, a block at a time."""
    head, trailer = frame(n, note)
    file.write(head)
    for block in checked_blocks(n, note.width, blocks):
        file.write(block.data)
    file.write(trailer)


def map_codes(path: str) -> tuple[np.ndarray, Note]:
    """The packed codes of a file, mapped into memory; a plain .npy has an empty note."""
    array, note = _map(path)
    require_packed(path, array.dtype, array.shape)
    return array, note or Note()


def map_marked_codes(path: str) -> tuple[np.ndarray, Note] | None:
    """The packed codes of a file that says so, mapped into memory; None for any other .npy."""
    array, note = _map(path)
    if note is None or array.dtype != np.uint8 or array.ndim != 2:
        return None
    return array, note


def read_note(path: str) -> Note | None:
    """What a file says about its codes; None if it is a .npy of something else."""
    marked = map_marked_codes(path)
    return None if marked is None else marked[1]


def _map(path: str) -> tuple[np.ndarray, Note | None]:
    """The array of a .npy file, mapped, and what its trailer says."""
    try:
        array: Any = map_npy(path)
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            file.seek(array.offset + array.nbytes)
            trailer = file.read(_LONGEST)
    except READ_ERRORS as error:
        raise FileFormatError(f"{path} is not a readable .npy file: {one_line(error)}") from None
    if not trailer and version != _VERSION:
        return array, None
    match = _TRAILER.fullmatch(trailer)
    if match is None:
        raise FileFormatError(f"{path} is damaged: what follows its array is not rankbits' trailer")
    model, side, n_bits = (None if text is None else text.decode() for text in match.groups())
    return array, Note.parse(n_bits, model, side, path)
