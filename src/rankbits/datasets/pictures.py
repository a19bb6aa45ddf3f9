"""Folders of pictures: listed at once, read by Pillow one after the other.

Sub-folders that hold pictures are classes, named by the sub-folder. A folder without such
sub-folders holds pictures without labels.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from rankbits import _check
from rankbits._files import unreadable_files_refused
from rankbits.errors import InputError

Path = str | os.PathLike[str]
_FORMATS = {
    ".bmp": "BMP",
    ".jpeg": "JPEG",
    ".jpg": "JPEG",
    ".png": "PNG",
    ".ppm": "PPM",
    ".webp": "WEBP",
}
_BICUBIC = 3  # PIL.Image.Resampling.BICUBIC


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures of a folder, and what the folder says about them.

    Attributes
    ----------
    x : ndarray of uint8, shape (n, height, width, 3)
        The pixels of each picture, red, green and blue.
    y : ndarray of int64, shape (n,), or None
        The class of each picture. None if the folder has no classes.
    names : tuple of str
        Names of the classes. It is empty if there are none.
    files : tuple of str
        The file of each picture, relative to the folder, with "/" between folders.
    """

    x: np.ndarray
    y: np.ndarray | None
    names: tuple[str, ...]
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class PictureFolder:
    """The pictures of a folder before they are read; attributes as of `Pictures`."""

    path: str
    files: tuple[str, ...]
    y: np.ndarray | None
    names: tuple[str, ...]

    def read(self, size: tuple[int, int] | None) -> np.ndarray:
        """All pictures, resized to (height, width); without a size they must have one already."""
        first = self._pixels(0, size)
        x = np.empty((len(self.files), *first.shape), np.uint8)
        for row, pixels in enumerate(self._all_pixels(0, len(self.files), first.shape[:2], size)):
            x[row] = pixels
        return x

    def rows(self, size: tuple[int, int]) -> "PictureRows":
        """The pictures as rows of one shape, to be read block by block."""
        return PictureRows(self, size)

    def _all_pixels(
        self, start: int, stop: int, shape: tuple[int, ...], size: tuple[int, int] | None
    ) -> Iterator[np.ndarray]:
        for row in range(start, stop):
            pixels = self._pixels(row, size)
            if pixels.shape[:2] != shape:
                raise InputError(
                    f"pictures must have one size, {self.files[0]} has {shape} pixels and "
                    f"{self.files[row]} has {pixels.shape[:2]}; resize them with size= or "
                    "--image-size"
                )
            yield pixels

    def _pixels(self, row: int, size: tuple[int, int] | None) -> np.ndarray:
        image = _check.extra("PIL.Image", "reading pictures", "images")
        file = os.path.join(self.path, self.files[row])
        kind = _FORMATS[os.path.splitext(file)[1].lower()]
        with unreadable_files_refused(file, kind), image.open(file, formats=[kind]) as picture:
            return _resized(picture, size)


@dataclass(frozen=True, eq=False)
class PictureRows:
    """The pictures of a folder as rows, with the interface of `RowFile`."""

    folder: PictureFolder
    size: tuple[int, int]

    @property
    def path(self) -> str:
        """The folder."""
        return self.folder.path

    @property
    def n_rows(self) -> int:
        """Pictures in the folder."""
        return len(self.folder.files)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one picture."""
        return (*self.size, 3)

    def blocks(self, start: int, step: int) -> Iterator[np.ndarray]:
        """Blocks of `step` pictures, the last one shorter, from picture `start` on."""
        for first in range(start, self.n_rows, step):
            stop = min(first + step, self.n_rows)
            yield np.stack(list(self.folder._all_pixels(first, stop, self.size, self.size)))

    def identity(self) -> dict[str, Any]:
        """What tells these pictures from others, without reading them."""
        listing = hashlib.sha256()
        for name in self.folder.files:
            stat = os.stat(os.path.join(self.path, name))
            listing.update(f"{name!r} {stat.st_size} {stat.st_mtime_ns}\n".encode())
        shape = [self.n_rows, *self.row_shape]
        return {"path": os.path.abspath(self.path), "files": listing.hexdigest(), "shape": shape}


def list_pictures(folder: Path) -> PictureFolder:
    """The pictures of a folder: classes in the order of their names, pictures in that of theirs.

    Hidden files and files of other kinds are passed over.
    """
    path = os.fspath(folder)
    if not os.path.isdir(path):
        raise InputError(f"folder must name a folder of pictures, there is no {path}")
    names = sorted(entry.name for entry in os.scandir(path) if _is_class(entry))
    groups = {name: _pictures_in(os.path.join(path, name)) for name in names}
    groups = {name: group for name, group in groups.items() if group}
    if groups:
        y = np.repeat(np.arange(len(groups)), [len(group) for group in groups.values()])
        files = [f"{name}/{file}" for name, group in groups.items() for file in group]
        return PictureFolder(path, _checked_names(files), y, tuple(groups))
    files = _pictures_in(path)
    if not files:
        raise InputError(
            f"folder must hold pictures ({', '.join(_FORMATS)}), by themselves or in a sub-folder "
            f"for each class; {path} has none"
        )
    return PictureFolder(path, _checked_names(files), None, ())


def read_picture(stream: BinaryIO, size: tuple[int, int] | None, *, most_pixels: int) -> np.ndarray:
    """Pixels of one picture of unknown origin, resized as those of a folder are.

    Its size is looked at before anything is decoded: a small file can hold a huge picture.
    """
    with _opened(stream) as picture:
        if picture.width * picture.height > most_pixels:
            raise InputError(
                f"pictures must have at most {most_pixels} pixels, got {picture.width} x "
                f"{picture.height}"
            )
        return _resized(picture, size)


def count_pixels(stream: BinaryIO) -> int:
    """Pixels that one picture of unknown origin would have, of which none is decoded."""
    with _opened(stream) as picture:
        return int(picture.width * picture.height)


@contextmanager
def _opened(stream: BinaryIO) -> Iterator[Any]:
    """A picture of unknown origin, of which nothing has been decoded."""
    image = _check.extra("PIL.Image", "reading pictures", "images")
    kinds = sorted(set(_FORMATS.values()))
    refused = unreadable_files_refused("the picture", "picture")
    with refused, image.open(stream, formats=kinds) as picture:
        yield picture


def _resized(picture: Any, size: tuple[int, int] | None) -> np.ndarray:
    """Red, green and blue of a picture in the size (height, width), or in its own."""
    colors = picture.convert("RGB")
    if size is not None and colors.size != size[::-1]:
        colors = colors.resize(size[::-1], _BICUBIC)
    return np.asarray(colors)


def load_images(folder: Path, size: int | None = None) -> Pictures:
    """Pictures of a folder; sub-folders with pictures are classes.

    Parameters
    ----------
    folder : str or path-like
        Folder with the pictures, or with a sub-folder for each class. Classes and pictures come in
        the order of their names. Hidden files and files of other kinds are passed over.
    size : int or None, default=None
        Height and width to which pictures are resized, without regard to their proportions. None
        requires that all of them have one size already.

    Needs Pillow: pip install 'rankbits[images]'.
    """
    if size is not None:
        _check.whole("size", size, 1, 1 << 14)
    listed = list_pictures(folder)
    x = listed.read(None if size is None else (size, size))
    return Pictures(x, listed.y, listed.names, listed.files)


def _is_class(entry: "os.DirEntry[str]") -> bool:
    return entry.is_dir() and not entry.name.startswith(".")


def _pictures_in(folder: str) -> list[str]:
    return [
        name
        for name in sorted(os.listdir(folder))
        if os.path.splitext(name)[1].lower() in _FORMATS and not name.startswith(".")
    ]


def _checked_names(files: Sequence[str]) -> tuple[str, ...]:
    """File names that can stand on a line each."""
    for name in files:
        if len(name.splitlines()) != 1:
            raise InputError(f"names of pictures must have no line breaks, got {name!r}")
    return tuple(files)
