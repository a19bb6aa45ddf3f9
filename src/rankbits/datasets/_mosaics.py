"""CIFAR-10 as WebP mosaics in an .npz file, read by Pillow."""

import io
import os

import numpy as np

from rankbits import _check
from rankbits._files import unreadable_files_refused
from rankbits.datasets._features import (
    Labelled,
    class_numbers,
    existing_file,
    join_parts,
    names_of,
    read_arrays,
    require_keys,
    require_same_rows,
)
from rankbits.errors import FileFormatError

Path = str | os.PathLike[str]
_SIDE = 32


def load_cifar_mosaics(path: Path) -> Labelled:
    """Images of CIFAR-10 from an .npz of WebP mosaics: webp_train, len_train, y_train, ..._test.

    `webp_*` are WebP files one after the other, `len_*` their lengths in bytes. A mosaic holds its
    images row by row. Needs Pillow: pip install 'rankbits[images]'.

    Parameters
    ----------
    path : str or path-like
        The .npz file. The names of the classes are read from its array `classes`, if it has one.
    """
    file = existing_file(path)
    keys = tuple(f"{what}_{part}" for part in ("train", "test") for what in ("webp", "len", "y"))
    arrays = read_arrays(file, (*keys, "classes"))
    require_keys(file, arrays, keys)
    x, y = [], []
    for part in ("train", "test"):
        images = _tiles(file, arrays[f"webp_{part}"], arrays[f"len_{part}"])
        labels = class_numbers(file, arrays, f"y_{part}")
        require_same_rows(file, f"webp_{part}", len(images), f"y_{part}", len(labels))
        x.append(images)
        y.append(labels)
    return join_parts(file, (x[0], x[1]), (y[0], y[1]), names_of(file, arrays, "classes"))


def _tiles(file: str, stream: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """All images of the mosaics, uint8 of shape (n, 32, 32, 3)."""
    image = _check.extra("PIL.Image", "reading WebP mosaics", "images")
    is_cut = stream.dtype == np.uint8 and stream.ndim == 1 and lengths.ndim == 1
    is_cut = is_cut and lengths.dtype.kind in "iu" and lengths.min(initial=1) > 0
    if not is_cut or lengths.sum() != len(stream):
        raise FileFormatError(
            f"{file} must have mosaics as bytes and lengths that add up to their number, got "
            f"{_check.describe(stream)} and {_check.describe(lengths)}"
        )
    tiles = [np.empty((0, _SIDE, _SIDE, 3), np.uint8)]
    for end, length in zip(np.cumsum(lengths), lengths, strict=True):
        with unreadable_files_refused(file, "mosaic"):
            picture = image.open(io.BytesIO(stream[end - length : end].tobytes()), formats=["WEBP"])
            pixels = np.asarray(picture.convert("RGB"))
        if pixels.shape[0] % _SIDE or pixels.shape[1] % _SIDE:
            raise FileFormatError(
                f"{file} must have mosaics of whole images, 32 x 32, got one of "
                f"{pixels.shape[0]} x {pixels.shape[1]}"
            )
        rows, columns = pixels.shape[0] // _SIDE, pixels.shape[1] // _SIDE
        cut = pixels.reshape(rows, _SIDE, columns, _SIDE, 3).swapaxes(1, 2)
        tiles.append(cut.reshape(-1, _SIDE, _SIDE, 3))
    return np.concatenate(tiles)
