"""NUS-WIDE: its low-level features beside its labels, and tags of its users, from text files.

One line per image:
    Low_Level_Features/{Train,Test}_Normalized_{CH,CM55,CORR,EDH,WT}.dat    numbers
    Groundtruth/TrainTestLabels/Labels_CONCEPT_{Train,Test}.txt             0 or 1
    NUS_WID_Tags/AllTags1k.txt    0 or 1 for each of the 1,000 tags that TagList1k.txt names

The archive of the features may have been unpacked into a folder of its own name: then they are in
NUS_WID_Low_Level_Features/Low_Level_Features.

Chua et al., CIVR 2009; `load_nuswide` reads the labels of all images.
"""

import os

import numpy as np

from rankbits import _check
from rankbits._files import require_file, unreadable_files_refused
from rankbits.datasets._features import Labelled
from rankbits.datasets._nuswide import label_columns, sorted_concepts
from rankbits.errors import FileFormatError, InputError

Path = str | os.PathLike[str]
FEATURES = ("CH", "CM55", "CORR", "EDH", "WT")
_PARTS = ("Train", "Test")
_FOLDER, _ARCHIVE = "Low_Level_Features", "NUS_WID_Low_Level_Features"


def load_nuswide_features(folder: Path, n_concepts: int | None = 21) -> Labelled:
    """Low-level features of NUS-WIDE side by side, and the most frequent concepts as tags.

    Parameters
    ----------
    folder : str or path-like
        The unpacked folder. Of the five kinds of features (color histogram, block-wise color
        moments, color correlogram, edge directions, wavelet texture) those that it has are read.
    n_concepts : int or None, default=21
        Keep this many of the most frequent concepts and the images that show one of them. None
        keeps everything.
    """
    name = os.fspath(folder)
    kinds = _kinds(name)
    labels = os.path.join(name, "Groundtruth", "TrainTestLabels")
    if not os.path.isdir(labels):
        raise InputError(f"folder must hold Groundtruth/TrainTestLabels, {name} does not")
    concepts = sorted_concepts(labels, f"_{_PARTS[0]}.txt")
    parts = [_part(name, part, concepts, kinds) for part in _PARTS]
    x, y = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
    is_test = np.repeat([False, True], [len(part[0]) for part in parts])
    if n_concepts is None:
        return Labelled(x, y, is_test, tuple(concepts))
    _check.whole("n_concepts", n_concepts, 1, len(concepts))
    order = np.argsort(-y.sum(axis=0, dtype=np.int64), kind="stable")[:n_concepts]
    rows = np.flatnonzero(y[:, order].any(axis=1))
    names = tuple(concepts[column] for column in order)
    return Labelled(x[rows], y[np.ix_(rows, order)], is_test[rows], names)


def load_nuswide_tags(folder: Path) -> tuple[np.ndarray, tuple[str, ...]]:
    """The 1,000 frequent tags that users gave, multi-hot as uint8 of shape (n, tags), and names.

    Parameters
    ----------
    folder : str or path-like
        The unpacked folder, which has NUS_WID_Tags.
    """
    tags = os.path.join(os.fspath(folder), "NUS_WID_Tags")
    with open(require_file(os.path.join(tags, "TagList1k.txt"), "the list of tags")) as stream:
        names = tuple(stream.read().split())
    file = require_file(os.path.join(tags, "AllTags1k.txt"), "the tags of all images")
    rows = _number_rows(file, np.int8)  # 270 MB of the public file
    if rows.shape[1] != len(names) or rows.min(initial=0) < 0 or rows.max(initial=0) > 1:
        raise FileFormatError(
            f"{file} must have 0 or 1 for each of the {len(names)} tags of TagList1k.txt, it has "
            f"{rows.shape[1]} columns from {rows.min(initial=0)} to {rows.max(initial=0)}"
        )
    return rows.astype(np.uint8), names


def _kinds(folder: str) -> list[str]:
    """Kinds of features that the folder has for both parts."""
    there = {
        kind: [os.path.isfile(_feature_file(folder, part, kind)) for part in _PARTS]
        for kind in FEATURES
    }
    for kind, parts in there.items():
        if any(parts) and not all(parts):
            lacking = _PARTS[parts.index(False)]
            raise InputError(
                f"folder has one part of {kind}, and no {_feature_file(folder, lacking, kind)}"
            )
    kinds = [kind for kind, parts in there.items() if all(parts)]
    if not kinds:
        example = _feature_file(folder, _PARTS[0], FEATURES[0])
        raise InputError(f"folder must hold low-level features such as {example}, it has none")
    return kinds


def _feature_file(folder: str, part: str, kind: str) -> str:
    unpacked = os.path.join(folder, _ARCHIVE)
    place = unpacked if os.path.isdir(unpacked) else folder
    return os.path.join(place, _FOLDER, f"{part}_Normalized_{kind}.dat")


def _part(
    folder: str, part: str, concepts: list[str], kinds: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Features and tags of the training or the test part, one row per image."""
    labels = os.path.join(folder, "Groundtruth", "TrainTestLabels")
    tags = label_columns(labels, concepts, f"_{part}.txt")
    blocks = []
    for kind in kinds:
        file = _feature_file(folder, part, kind)
        block = _number_rows(file, np.float32)
        if len(block) != len(tags):
            raise FileFormatError(
                f"{file} must have {len(tags)} lines, as many as the label lists, got {len(block)}"
            )
        blocks.append(block)
    return np.concatenate(blocks, axis=1), tags


def _number_rows(file: str, dtype: type) -> np.ndarray:
    """A text file of numbers; a line of another length or with other words is named by NumPy."""
    with unreadable_files_refused(file, "text"):
        return np.loadtxt(file, dtype, ndmin=2)
