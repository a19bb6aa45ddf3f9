r"""NUS-WIDE: names of images and the concepts that people saw in them, from its text files.

    Groundtruth/AllLabels/Labels_CONCEPT.txt   one line per image: 1 if the concept is in it, else 0
    ImageList/Imagelist.txt                    one line per image: its file, with "\\" as separator

Chua et al., "NUS-WIDE: a real-world web image database from National University of Singapore",
CIVR 2009. Its 81 concepts describe 269,648 images.

The public files have one misprint, line 78,372 of TrainTestLabels/Labels_lake_Train.txt, which is
-1130179; it is read as 0.
"""

import os
from dataclasses import dataclass

import numpy as np

from rankbits import _check
from rankbits._files import require_file
from rankbits.errors import FileFormatError, InputError

_PREFIX, _SUFFIX = "Labels_", ".txt"
_MISPRINTS = {"Labels_lake_Train.txt": b"-1130179"}


@dataclass(frozen=True, eq=False)
class TaggedImages:
    """The tags of images.

    Attributes
    ----------
    tags : ndarray of uint8, shape (n, L)
        Multi-hot tags of the images.
    concepts : tuple of str
        Names of the L tags.
    images : tuple of str
        Names of the n images, with "/" between folders. It is empty if there is no image list.
    rows : ndarray of int64, shape (n,)
        Line of each image in the files, from 0.
    """

    tags: np.ndarray
    concepts: tuple[str, ...]
    images: tuple[str, ...]
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.tags)


def load_nuswide(folder: str | os.PathLike[str], n_concepts: int | None = None) -> TaggedImages:
    """Tags of NUS-WIDE from the unpacked folder that has Groundtruth in it.

    Parameters
    ----------
    folder : str or path-like
        The unpacked folder, which has Groundtruth/AllLabels. The names of the images are read
        from ImageList/Imagelist.txt, if the folder has that file.
    n_concepts : int or None, default=None
        Keep only this many of the most frequent concepts, the most frequent first, and the images
        that show one of them; 21 is the usual choice. None keeps everything, sorted by name.
    """
    name = os.fspath(folder)
    labels = os.path.join(name, "Groundtruth", "AllLabels")
    if not os.path.isdir(labels):
        raise InputError(f"folder must hold Groundtruth/AllLabels, {name} does not")
    concepts = sorted_concepts(labels)
    if n_concepts is not None:
        _check.whole("n_concepts", n_concepts, 1, len(concepts))
    tags = label_columns(labels, concepts)
    images = _image_names(os.path.join(name, "ImageList", "Imagelist.txt"), len(tags))
    if n_concepts is None:
        return TaggedImages(tags, tuple(concepts), images, np.arange(len(tags)))
    order = np.argsort(-tags.sum(axis=0, dtype=np.int64), kind="stable")[:n_concepts]
    rows = np.flatnonzero(tags[:, order].any(axis=1))
    return TaggedImages(
        tags[np.ix_(rows, order)],
        tuple(concepts[column] for column in order),
        tuple(images[row] for row in rows) if images else (),
        rows,
    )


def sorted_concepts(folder: str, suffix: str = _SUFFIX) -> list[str]:
    """Names of the concepts that a folder has label lists of."""
    files = [file for file in os.listdir(folder) if file.startswith(_PREFIX)]
    names = [
        file.removeprefix(_PREFIX).removesuffix(suffix) for file in files if file.endswith(suffix)
    ]
    concepts = sorted(filter(None, names))
    if not concepts:
        raise InputError(
            f"folder must hold files named {_PREFIX}CONCEPT{suffix}, {folder} has none"
        )
    return concepts


def label_columns(folder: str, concepts: list[str], suffix: str = _SUFFIX) -> np.ndarray:
    """The label lists side by side."""
    first = _column(folder, concepts[0], suffix)
    tags = np.empty((len(first), len(concepts)), np.uint8)
    for place, concept in enumerate(concepts):
        column = _column(folder, concept, suffix)
        if len(column) != len(first):
            raise FileFormatError(
                f"{folder} must have label lists of one length, {concepts[0]} has {len(first)} "
                f"lines and {concept} has {len(column)}"
            )
        tags[:, place] = column
    return tags


def _column(folder: str, concept: str, suffix: str) -> np.ndarray:
    """One label list as 0 and 1."""
    file = os.path.join(folder, _PREFIX + concept + suffix)
    with open(require_file(file, "a label list"), "rb") as stream:
        lines = stream.read().split()
    misprint = _MISPRINTS.get(os.path.basename(file))
    lines = [b"0" if text == misprint else text for text in lines]
    if not lines or set(lines) - {b"0", b"1"}:
        line = next((row for row, text in enumerate(lines) if text not in (b"0", b"1")), 0)
        text = repr(lines[line][:20]) if lines else "nothing"
        raise FileFormatError(f"{file}, line {line + 1} must be 0 or 1, got {text}")
    return np.asarray(np.array(lines) == b"1", np.uint8)


def _image_names(file: str, n_images: int) -> tuple[str, ...]:
    """Names in the image list; none if there is no such file."""
    if not os.path.isfile(file):
        return ()
    with open(file, encoding="utf-8", errors="replace") as stream:
        names = tuple(line.strip().replace("\\", "/") for line in stream if line.strip())
    if len(names) != n_images:
        raise FileFormatError(
            f"{file} must name {n_images} images, as many as the label lists have lines, got "
            f"{len(names)}"
        )
    return names
