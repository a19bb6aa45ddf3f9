"""The one codec of code files: whole arrays and streams of blocks, in each format, through here.

The ending says the format: .npz, .parquet and .safetensors; any other name is a .npy, which is
mapped into memory when it is read.
"""

import os
from collections.abc import Iterable, Iterator

import numpy as np

from rankbits._files import require_file, write_atomically
from rankbits._mapped import unchanged
from rankbits.codes import npy, npz, parquet, stored, tensors
from rankbits.codes.arrow import Columns
from rankbits.codes.note import Note
from rankbits.errors import InputError

ENDINGS = (".npy", ".npz", ".parquet", ".safetensors")
Path = str | os.PathLike[str]


def write_codes(path: Path, note: Note, n: int, blocks: Iterable[np.ndarray]) -> None:
    """Write n packed codes block by block; a file of that name is replaced when all is written."""
    writers = {".npz": npz.write, ".parquet": parquet.write, ".safetensors": tensors.write}
    with write_atomically(path) as file:
        writers.get(_ending(path), npy.write)(file, note, n, blocks)


def in_blocks(packed: np.ndarray) -> Iterator[np.ndarray]:
    """An array as blocks, for `write_codes`; a file that it is mapped from must not change."""
    size = stored.BLOCK
    with unchanged(packed):
        for start in range(0, len(packed), size):
            yield packed[start : start + size]


def read_codes(path: Path, key: str | None = None) -> tuple[np.ndarray, Note]:
    """All packed codes of a file, and what it says about them; those of a .npy are mapped.

    `key` names the column of a .parquet that has several columns of bytes.
    """
    name, ending = require_file(path, "a file of codes"), _ending(path)
    if ending == ".parquet":
        columns = None if key is None else Columns(None, key)
        with parquet.open_codes(name, columns) as content:
            return content.read(), content.note
    if ending not in (".npz", ".safetensors"):
        if key is not None:
            raise InputError(f"key must not be given for a .npy file, {name} holds one array")
        return npy.map_codes(name)
    if key not in (None, stored.CODES):
        raise InputError(f"key must be {stored.CODES!r} for codes in {name}, got {key!r}")
    with (npz if ending == ".npz" else tensors).open_codes(name) as content:
        return content.read(), content.note


def read_note(path: Path, key: str | None = None) -> Note | None:
    """What a file says about its codes; None if it does not say that it holds packed codes."""
    name, ending = os.fspath(path), _ending(path)
    if ending == ".parquet":
        return parquet.read_note(name, key)
    if ending == ".safetensors":
        return tensors.read_note(name, key)
    if ending == ".npz":
        return npz.read_note(name) if key in (None, stored.CODES) else None
    return npy.read_note(name) if key is None else None


def _ending(path: Path) -> str:
    return os.path.splitext(os.fspath(path))[1]
