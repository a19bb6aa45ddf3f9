"""Loading of one array from a file of any format."""

import os
import re
from collections.abc import Callable

import numpy as np

from rankbits import _check
from rankbits._files import require_file
from rankbits.datasets._formats import read_npy, read_npz, read_safetensors
from rankbits.datasets._parquet import read_parquet
from rankbits.errors import FileFormatError, InputError

_READERS: dict[str, Callable[[str, str | None], np.ndarray]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".safetensors": read_safetensors,
}
_WITH_KEY = re.compile(r"(.+\.(?:npy|npz|parquet|safetensors)):(.+)", re.DOTALL)


def load_array(path: str | os.PathLike[str], key: str | None = None) -> np.ndarray:
    """Load one array of numbers, bools or strings.

    Parameters
    ----------
    path : str or path-like
        File that ends in .npy, .npz, .parquet or .safetensors. FILE:KEY is the file FILE with the
        key KEY.
    key : str or None, default=None
        Name of the array, where the file holds several. In .parquet it names a column. A column of
        lists or of bytes of one length is a matrix, of bytes as uint8; without a key, several
        numeric columns are the columns of a matrix.

    A .npy is memory-mapped: nothing is read before it is used.
    """
    file, key = split_key(path, key)
    require_data_file(file)
    array = _READERS[os.path.splitext(file)[1]](file, key)
    if array.dtype.kind not in "biufUS":
        raise FileFormatError(
            f"{path} must hold numbers, bools or strings, got {_check.describe(np.asarray(array))}"
        )
    return array


def require_data_file(file: str) -> None:
    """Refuse what is missing, a folder, of an unknown ending, or empty."""
    if os.path.isdir(file):
        raise InputError(
            f"path must name a file, {file} is a folder; `rankbits fit` and `rankbits encode` take "
            f"folders of pictures, everything else takes a file ending in {', '.join(_READERS)}"
        )
    require_file(file, "a file")
    if os.path.splitext(file)[1] not in _READERS:
        raise InputError(f"path must end in {', '.join(_READERS)}; got {file}")
    if os.path.getsize(file) == 0:
        raise FileFormatError(f"{file} is empty, 0 bytes")


def split_key(path: str | os.PathLike[str], key: str | None = None) -> tuple[str, str | None]:
    """The file and the key of FILE:KEY; an existing file of that very name takes precedence.

    >>> split_key("codes.npz:queries")
    ('codes.npz', 'queries')
    """
    name = os.fspath(path)
    match = _WITH_KEY.fullmatch(name)
    if match is None or key is not None or os.path.exists(name):
        return name, key
    return match[1], match[2]
