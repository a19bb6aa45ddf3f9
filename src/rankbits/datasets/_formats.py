"""Readers of .npy, .npz and .safetensors: an array, or one sentence that says why not."""

from collections.abc import Sequence

import numpy as np

from rankbits._files import unreadable_files_refused
from rankbits._mapped import map_npy
from rankbits._tensors import TensorFile
from rankbits._unpacking import require_unpackable_npz
from rankbits.errors import FileFormatError, InputError

_NPY_MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK\x03\x04"


def read_npy(path: str, key: str | None) -> np.ndarray:
    """The array of a .npy file, memory-mapped."""
    if key is not None:
        raise InputError(f"key must not be given for a .npy file, {path} holds one array")
    require_magic(path, _NPY_MAGIC, ".npy")
    with unreadable_files_refused(path, ".npy"):
        return map_npy(path)


def read_npz(path: str, key: str | None) -> np.ndarray:
    """One array of a .npz file."""
    require_magic(path, ZIP_MAGIC, ".npz")
    with (
        unreadable_files_refused(path, ".npz"),
        open(path, "rb") as file,
        np.load(file, allow_pickle=False) as arrays,
    ):
        name = pick_key(path, key, list(arrays.keys()))
        require_unpackable_npz(path, arrays.zip, [name])
        array = arrays[name]
        if not isinstance(array, np.ndarray):
            raise FileFormatError(f"{path} must hold arrays, its member {name!r} is not a .npy")
        return array


def read_safetensors(path: str, key: str | None) -> np.ndarray:
    """One tensor of a .safetensors file."""
    file = TensorFile(path)
    return file.read(pick_key(path, key, file.names))


def pick_key(path: str, key: str | None, known: Sequence[str]) -> str:
    """The given key, which must be there, or the only one there is."""
    shown = [name if name.isprintable() else repr(name) for name in known[:20]]
    names = ", ".join(shown) + (", ..." if len(known) > 20 else "")
    if not known:
        raise FileFormatError(f"{path} holds no array")
    if key is None and len(known) > 1:
        raise InputError(f"{path} holds several arrays, name one of them as FILE:KEY: {names}")
    if key is not None and key not in known:
        raise InputError(f"key must be one of {names} for {path}, got {key!r}")
    return known[0] if key is None else key


def require_magic(path: str, magic: bytes, kind: str) -> None:
    """Refuse a file of another kind before a reader tries to guess what it is."""
    with open(path, "rb") as file:
        start = file.read(len(magic))
    if start != magic:
        raise FileFormatError(f"{path} is not a {kind} file: it starts with {start!r}")
