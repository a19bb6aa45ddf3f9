"""ImageNet by folders, cut to the classes of a list.

    classes.txt         one class per line, as its folders are called (n01440764)
    train/CLASS/*.JPEG  pictures of the training part
    val/CLASS/*.JPEG    pictures of the validation part, sorted into folders too

Deng et al., "ImageNet: a large-scale hierarchical image database", CVPR 2009. ImageNet100 is the
choice of 100 classes of Cao et al., "HashNet", ICCV 2017.
"""

import os

import numpy as np

from rankbits import _check
from rankbits._files import require_file
from rankbits.datasets._features import Labelled
from rankbits.datasets.pictures import PictureFolder, list_pictures
from rankbits.errors import FileFormatError, InputError

Path = str | os.PathLike[str]
CLASS_LIST = "classes.txt"


def load_imagenet(folder: Path, classes: Path | None = None, *, size: int = 64) -> Labelled:
    """Pictures of the listed classes; those of val are the test part.

    Needs Pillow: pip install 'rankbits[images]'.

    Parameters
    ----------
    folder : str or path-like
        The folder that has train and val.
    classes : str or path-like, or None, default=None
        The list of classes. None reads classes.txt of the folder.
    size : int, default=64
        Height and width to which pictures are resized.
    """
    name = os.fspath(folder)
    _check.whole("size", size, 1, 1 << 14)
    listed = _class_names(os.path.join(name, CLASS_LIST) if classes is None else classes)
    x, y = [], []
    for part in ("train", "val"):
        pictures = _pictures_of(os.path.join(name, part), listed)
        x.append(pictures.read((size, size)))
        y.append(np.asarray(pictures.y))
    is_test = np.repeat([False, True], [len(part) for part in x])
    return Labelled(np.concatenate(x), np.concatenate(y), is_test, listed)


def _class_names(path: Path) -> tuple[str, ...]:
    """The classes of a list, each on the first word of its line."""
    file = require_file(path, "the list of classes")
    with open(file, encoding="utf-8", errors="replace") as stream:
        names = [line.split()[0] for line in stream if line.strip()]
    if not names or len(set(names)) != len(names):
        raise FileFormatError(f"{file} must name each class once, it has {len(names)} lines")
    return tuple(names)


def _pictures_of(folder: str, listed: tuple[str, ...]) -> PictureFolder:
    """The pictures of the listed classes, in the order of the list."""
    whole = list_pictures(folder)
    missing = [name for name in listed if name not in whole.names]
    if missing:
        raise InputError(
            f"folder must have pictures of every class of the list, {folder} has none of "
            f"{len(missing)} classes, {missing[0]} first"
        )
    files_of: dict[str, list[str]] = {name: [] for name in listed}
    for file in whole.files:
        class_name = file.partition("/")[0]
        if class_name in files_of:
            files_of[class_name].append(file)
    files = tuple(file for group in files_of.values() for file in group)
    y = np.repeat(np.arange(len(listed)), [len(group) for group in files_of.values()])
    return PictureFolder(folder, files, y, listed)
