"""Folders that are replaced as a whole: a kill at any moment leaves the old one or the new one.

The files go to a new folder beside the old one and reach the disk; then the old folder steps aside,
the new one takes its name, and the old one is removed. A folder cannot be renamed onto another, so
there is a moment in which only the aside stands; readers look there too.
"""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rankbits._files import sync_folder
from rankbits.errors import FileFormatError, InputError

_TRIES = 100


@contextmanager
def write_folder_atomically(
    folder: str | os.PathLike[str], is_ours: Callable[[Path], bool]
) -> Iterator[Path]:
    """Give an empty folder to write to; it becomes `folder` if the block ends without an error.

    A folder that is there already is replaced if it is empty or `is_ours` says so, else refused.
    The block must have its files on the disk when it ends.
    """
    target = Path(folder).resolve()
    require_replaceable(target, is_ours)
    _settle(target, is_ours)
    temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}.new"
    temporary.mkdir()
    try:
        yield temporary
        sync_folder(temporary)
        _take_place(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(target.parent)
    shutil.rmtree(_aside(target), ignore_errors=True)


def read_folder(folder: str | os.PathLike[str], names: Sequence[str]) -> list[bytes]:
    """The contents of some files of one folder, all of the same save even if it is replaced now."""
    target = Path(folder).resolve()
    for _ in range(_TRIES):
        place = target if target.exists() else _aside(target)
        try:
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        except NotADirectoryError:
            raise InputError(f"folder must name a model's folder, {folder} is a file") from None
        except FileNotFoundError:
            continue  # the old one stepped aside, or the new one came, between two looks
        try:
            return [_read_in(handle, name) for name in names]
        except FileNotFoundError as error:
            if _is_at(handle, place):
                raise FileFormatError(f"{folder} is no model: it has no {error.filename}") from None
        finally:
            os.close(handle)
    raise InputError(f"folder must name a model's folder, there is no {folder}")


def _read_in(handle: int, name: str) -> bytes:
    with open(os.open(name, os.O_RDONLY, dir_fd=handle), "rb") as file:
        return file.read()


def _is_at(handle: int, place: Path) -> bool:
    """Whether the open folder still has its name."""
    return place.exists() and os.path.samestat(os.fstat(handle), place.stat())


def _aside(target: Path) -> Path:
    return target.parent / f".{target.name}.old"


def require_replaceable(folder: str | os.PathLike[str], is_ours: Callable[[Path], bool]) -> None:
    """Refuse to write where there is something that is not ours to remove."""
    target = Path(folder).resolve()
    if not target.parent.is_dir():
        raise InputError(f"folder must lie in an existing folder, there is no {target.parent}")
    if target.exists() and not target.is_dir():
        raise InputError(f"folder must name a folder, {target} is a file")
    for place in (target, _aside(target)):
        if place.exists() and any(place.iterdir()) and not is_ours(place):
            raise InputError(
                f"folder must be new, empty or a model by itself, {place} holds something else; "
                "name another one"
            )


def _settle(target: Path, is_ours: Callable[[Path], bool]) -> None:
    """Finish what a kill in `_take_place` has left: the aside goes back, or goes for good."""
    aside = _aside(target)
    if not aside.exists():
        return
    if target.exists() and is_ours(target):
        shutil.rmtree(aside)
    else:
        os.replace(aside, target)


def _take_place(new: Path, target: Path) -> None:
    """Rename the new folder to the target; the old one, if any, is left aside."""
    aside = _aside(target)
    if target.exists():
        os.rename(target, aside)
    try:
        os.rename(new, target)
    except BaseException:
        if aside.exists():
            os.rename(aside, target)
        raise
