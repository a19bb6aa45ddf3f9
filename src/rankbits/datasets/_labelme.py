"""LabelMe-22K: GIST descriptors and distances between images, from its MATLAB file.

    LabelMe_gist.mat    gist (n, 512), ndxtrain and ndxtest (numbers of images from 1), and DistLM
                        (n, n), how much two images share by their annotated regions

Torralba, Fergus and Weiss, "Small codes and large image databases for recognition", CVPR 2008.
"""

import os

import numpy as np

from rankbits import _check
from rankbits._files import require_file, unreadable_files_refused
from rankbits.datasets._features import Labelled, without_labels
from rankbits.errors import FileFormatError

Path = str | os.PathLike[str]


def load_labelme(path: Path, *, normalize: bool = True) -> Labelled:
    """GIST descriptors of LabelMe-22K, which have no labels; images of ndxtest are the test part.

    Rows are ordered training part first, as ndxtrain and ndxtest name them.

    Parameters
    ----------
    path : str or path-like
        The file LabelMe_gist.mat, of MATLAB 5 to 7.2.
    normalize : bool, default=True
        Whether descriptors are centered and then scaled to unit length, as papers do.
    """
    file = require_file(path, "LabelMe_gist.mat")
    arrays = _read(file, ("gist", "ndxtrain", "ndxtest"))
    gist = arrays["gist"]
    if gist.ndim != 2 or gist.dtype.kind not in "fiu" or not np.isfinite(gist).all():
        raise FileFormatError(
            f"{file} must have gist as finite numbers of shape (n, 512), got "
            f"{_check.describe(gist)}"
        )
    training, test = (_image_rows(file, arrays, key, len(gist)) for key in ("ndxtrain", "ndxtest"))
    order = np.concatenate([training, test])
    if len(np.unique(order)) != len(order):
        raise FileFormatError(f"{file} must name each image once in ndxtrain and ndxtest")
    x = _unit_rows(gist) if normalize else gist.astype(np.float32)
    is_test = np.arange(len(order)) >= len(training)
    return Labelled(x[order], without_labels(len(order)), is_test)


def load_labelme_distances(path: Path) -> np.ndarray:
    """The matrix DistLM of LabelMe-22K in the order of `load_labelme`, made symmetric.

    A larger number says that two images share more of their annotated regions.

    Parameters
    ----------
    path : str or path-like
        The file LabelMe_gist.mat, of MATLAB 5 to 7.2.
    """
    file = require_file(path, "LabelMe_gist.mat")
    arrays = _read(file, ("DistLM", "ndxtrain", "ndxtest"))
    shared = arrays["DistLM"]
    if shared.ndim != 2 or shared.shape[0] != shared.shape[1] or shared.dtype.kind not in "fiu":
        raise FileFormatError(
            f"{file} must have DistLM as numbers of shape (n, n), got {_check.describe(shared)}"
        )
    rows = [_image_rows(file, arrays, key, len(shared)) for key in ("ndxtrain", "ndxtest")]
    order = np.concatenate(rows)
    ordered = shared[np.ix_(order, order)].astype(np.float32)
    return np.asarray((ordered + ordered.T) / 2)


def _read(file: str, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    from scipy.io import loadmat

    with unreadable_files_refused(file, ".mat"):
        stored = loadmat(file, variable_names=list(keys))
    missing = [key for key in keys if key not in stored]
    if missing:
        raise FileFormatError(f"{file} must hold {', '.join(keys)}; it has no {missing[0]}")
    return {key: np.asarray(stored[key]) for key in keys}


def _image_rows(file: str, arrays: dict[str, np.ndarray], key: str, n_images: int) -> np.ndarray:
    """Rows from 0 of images that MATLAB numbers from 1, in whatever number type."""
    numbers = arrays[key].ravel()
    rows = numbers.astype(np.int64) - 1
    is_whole = numbers.dtype.kind in "fiu" and np.array_equal(rows + 1, numbers)
    if not len(rows) or not is_whole or rows.min() < 0 or rows.max() >= n_images:
        raise FileFormatError(
            f"{file} must have {key} as numbers of images from 1 to {n_images}, got "
            f"{_check.describe(arrays[key])}"
        )
    return rows


def _unit_rows(gist: np.ndarray) -> np.ndarray:
    centered = gist - gist.mean(axis=0, dtype=np.float64)
    lengths = np.linalg.norm(centered, axis=1, keepdims=True)
    return np.asarray(centered / np.where(lengths > 0, lengths, 1), np.float32)
