"""GIST descriptors of the Tiny Images: one binary file of 384 floats per image.

    tinygist80million.bin    79,302,017 rows of 384 little-endian 32-bit floats, nothing else

Torralba, Fergus and Freeman, "80 million tiny images: a large data set for nonparametric object and
scene recognition", IEEE TPAMI 30(11), 2008. The one-million sets of papers are parts of it.
"""

import os

import numpy as np

from rankbits import _check
from rankbits._files import require_file
from rankbits._mapped import unchanged
from rankbits.datasets._features import Labelled, without_labels
from rankbits.errors import FileFormatError

N_NUMBERS = 384  # of a descriptor
_ROW_BYTES = 4 * N_NUMBERS


def load_tiny_gist(path: str | os.PathLike[str], n_rows: int = 1_000_000) -> Labelled:
    """The first descriptors of a binary file, which have no labels.

    Parameters
    ----------
    path : str or path-like
        The file, of which only these rows are read.
    n_rows : int, default=1,000,000
        How many; a file that has fewer is refused.
    """
    file = require_file(path, "a binary file of GIST descriptors")
    size = os.path.getsize(file)
    _check.whole("n_rows", n_rows, 1)
    if size % _ROW_BYTES or size == 0:
        raise FileFormatError(
            f"{file} must be rows of {N_NUMBERS} floats, {_ROW_BYTES} bytes each; its {size} bytes "
            f"are {size / _ROW_BYTES:.2f} rows: a download that was cut off?"
        )
    if size < n_rows * _ROW_BYTES:
        raise FileFormatError(f"{file} must have {n_rows} rows, it has {size // _ROW_BYTES}")
    stored = np.memmap(file, "<f4", "r", shape=(n_rows, N_NUMBERS))
    with unchanged(stored):
        x = np.array(stored, np.float32)
    bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if len(bad):
        raise FileFormatError(f"{file} must have finite numbers, row {bad[0]} has others")
    return Labelled(x, without_labels(n_rows), np.zeros(n_rows, np.bool_))
