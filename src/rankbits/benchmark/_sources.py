"""A protocol's data: a file or a folder on disk, or rows that are in memory already.

FILE.npz            features of any layout, or WebP mosaics; see `rankbits.datasets`
a folder            its only NAME*.npz of features, where NAME is what the protocol asks for; else
                    the set in its public layout (`_layouts.py`)
Labelled            rows that some code has made
"""

import hashlib
import os
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits._files import READ_ERRORS
from rankbits.benchmark._layouts import NPZ_READERS, layout_of
from rankbits.datasets import Labelled, load_cifar_mosaics, load_features
from rankbits.errors import FileFormatError, InputError

_FEATURES = ({"x_train.npy"}, {"features.npy"}, *NPZ_READERS)
_MOSAICS = "webp_train.npy"


@dataclass(frozen=True, eq=False)
class DataSource:
    """Data as loaded, the name it came under, and a digest of all its values."""

    data: Labelled
    name: str
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        rows = {"rows": len(self.data), "row_shape": list(self.data.x.shape[1:])}
        return {"name": self.name, "sha256": self.digest, **rows}


def load_source(name: str, data: str | os.PathLike[str] | Labelled) -> DataSource:
    """The data that a protocol calls `name`, from a file or a folder, or as it is."""
    if isinstance(data, Labelled):
        return DataSource(data, name, _digest(data))
    path = require_data(name, data)
    rows = _read(name, path)
    return DataSource(rows, os.path.basename(os.path.normpath(path)), _digest(rows))


def has_data(name: str, folder: str | os.PathLike[str]) -> bool:
    """Whether a folder has the data that protocols call `name`; a damaged file is an error.

    Parameters
    ----------
    name : of a data set, as `Protocol.data` has it
    folder : to look into; a file stands for itself
    """
    try:
        require_data(name, folder)
    except FileFormatError:
        raise
    except InputError:
        return False
    return True


def require_data(name: str, folder: str | os.PathLike[str]) -> str:
    """The path of the data that protocols call `name`; an error says what was expected.

    Parameters
    ----------
    name : of a data set, as `Protocol.data` has it
    folder : to look into; a file stands for itself
    """
    place = os.fspath(folder)
    if not os.path.exists(place):
        raise InputError(f"data must name a folder or a file, there is no {place}")
    return place if os.path.isfile(place) else _path_within(place, name)


def _read(name: str, path: str) -> Labelled:
    """The rows of a file or folder: what a file holds decides, then what the set is."""
    members = _members(path)
    if _MOSAICS in members:
        return load_cifar_mosaics(path)
    for arrays, reader in NPZ_READERS.items():
        if arrays <= members:
            return reader(path)
    public_reader = layout_of(name).read
    if public_reader is not None and not path.endswith(".npz"):
        return public_reader(path)
    return load_features(path)


def _path_within(folder: str, name: str) -> str:
    """The one file of features, or the set in its public layout."""
    pattern = re.compile(re.escape(name) + r"(?![0-9A-Za-z]).*\.npz")  # cifar10 is not cifar100
    named = [file for file in sorted(os.listdir(folder)) if pattern.fullmatch(file)]
    features = [file for file in named if _has_features(os.path.join(folder, file))]
    if len(features) > 1:
        raise InputError(
            f"data must hold one file {name}*.npz of features, {folder} has "
            f"{', '.join(features)}; name the file itself"
        )
    if features:
        return os.path.join(folder, features[0])
    layout = layout_of(name)
    path = layout.find(folder)
    if path is None:
        _require_whole(os.path.join(folder, file) for file in named)
        public = "" if layout.files == f"{name}*.npz" else f", or {layout.files}"
        raise InputError(
            f"data must hold a file {name}*.npz of features{public}; {folder} has none of them. "
            f"The set is described in: {layout.described}. Name another file itself if there is one"
        )
    return path


def _require_whole(files: Iterable[str]) -> None:
    """Refuse a file of features that is cut off, rather than say that there is none."""
    for file in files:
        if not zipfile.is_zipfile(file):
            raise FileFormatError(f"{file} is not a readable .npz file: it is cut off or damaged")


def _has_features(file: str) -> bool:
    members = _members(file)
    return any(arrays <= members for arrays in _FEATURES)


def _members(file: str) -> set[str]:
    """Names of the arrays of an .npz file; none if it is not one, as its reader will say."""
    try:
        with zipfile.ZipFile(file) as stored:
            return set(stored.namelist())
    except READ_ERRORS:
        return set()


def _digest(data: Labelled) -> str:
    """SHA-256 of rows, labels and parts, so that a result says which data it is about."""
    state = hashlib.sha256()
    arrays = (data.x, data.y, data.is_test)
    judged = () if data.judgements is None else (data.judgements,)  # digests of before have none
    for array in (*arrays, *judged):
        state.update(f"{array.dtype.str} {array.shape}\n".encode())
        state.update(np.ascontiguousarray(array).data)
    return state.hexdigest()
