"""A protocol's data on disk: a file, or the one file of a folder that is meant.

FILE.npz            features of either layout, or WebP mosaics; see `rankbits.datasets`
a folder            its only NAME*.npz of features, where NAME is what the protocol asks for;
                    else the python batches of CIFAR in it
"""

import hashlib
import os
import re
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits._files import READ_ERRORS
from rankbits.datasets import (
    Labelled,
    is_cifar_folder,
    load_cifar,
    load_cifar_mosaics,
    load_features,
)
from rankbits.errors import InputError

_FEATURES = ("x_train.npy", "features.npy")
_MOSAICS = "webp_train.npy"
_BATCHES = "cifar-10-batches-py"


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


def load_source(name: str, path: str | os.PathLike[str]) -> DataSource:
    """The data that a protocol calls `name`, from a file or a folder."""
    place = os.fspath(path)
    if not os.path.exists(place):
        raise InputError(f"data must name a folder or a file, there is no {place}")
    path = place if os.path.isfile(place) else _found_in(place, name)
    if os.path.isdir(path):
        data = load_cifar(path)
    elif _MOSAICS in _members(path):
        data = load_cifar_mosaics(path)
    else:
        data = load_features(path)
    return DataSource(data, os.path.basename(os.path.normpath(path)), _digest(data))


def _found_in(folder: str, name: str) -> str:
    """The one file of features, or the folder of batches."""
    pattern = re.compile(re.escape(name) + r"(?![0-9A-Za-z]).*\.npz")  # cifar10 is not cifar100
    features = [
        file
        for file in sorted(os.listdir(folder))
        if pattern.fullmatch(file) and set(_FEATURES) & _members(os.path.join(folder, file))
    ]
    if len(features) > 1:
        raise InputError(
            f"data must hold one file {name}*.npz of features, {folder} has "
            f"{', '.join(features)}; name the file itself"
        )
    if features:
        return os.path.join(folder, features[0])
    for place in (folder, os.path.join(folder, _BATCHES)):
        if name == "cifar10" and is_cifar_folder(place):
            return place
    raise InputError(
        f"data must hold a file {name}*.npz of features, {folder} has none; name another file "
        "itself if there is one"
    )


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
    for array in (data.x, data.y, data.is_test):
        state.update(f"{array.dtype.str} {array.shape}\n".encode())
        state.update(np.ascontiguousarray(array).data)
    return state.hexdigest()
