"""Folders that are replaced as a whole: a kill at any moment leaves the old one or the new one.

The files are written to a new folder beside the old one; then the old folder is renamed to a
backup, the new one takes its name, and the backup is removed. A folder cannot be renamed onto
another, so there is a moment in which only the backup exists; readers look there too. A folder that
is being filled or removed has a temporary name and is locked while its process lives, so the next
save can remove what a killed process has left.

What is replaced is removed. So whoever replaces a folder says what in it is foreign: files that
were not written by rankbits, or not as they are now. Such a folder is refused, and looked at again
after it was moved aside.
"""

import fcntl
import glob
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rankbits._files import sync_folder
from rankbits.errors import FileFormatError, InputError

FindForeign = Callable[[Path], str | None]  # what a folder holds that must stay, in words
Requirement = Callable[[str, IO[bytes], os.stat_result], None]  # of a file before it is read
_TRIES = 100
_TOKEN = 4  # random bytes in the name of a temporary folder


@contextmanager
def write_folder_atomically(
    folder: str | os.PathLike[str], find_foreign: FindForeign
) -> Iterator[Path]:
    """Yield an empty folder to write to; it becomes `folder` if the block ends without an error.

    An existing folder is replaced if it is empty or nothing in it is foreign, else refused. The
    block must have synced its files to the disk when it ends.
    """
    target = _resolve(folder)
    require_replaceable(target, find_foreign)
    _settle(target, find_foreign)
    _sweep(target)
    temporary, lock = _fresh(target)
    try:
        yield temporary
        sync_folder(temporary)
        _take_place(temporary, target, find_foreign)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:
        os.close(lock)
    sync_folder(target.parent)
    _discard(_backup(target), target)


def read_folder(
    folder: str | os.PathLike[str], names: Sequence[str], require: Requirement
) -> list[bytes]:
    """The contents of some files of a folder, all of one save even if it is being replaced.

    `require` refuses a file before it is read, by a FileFormatError.
    """
    target = _resolve(folder)
    for _ in range(_TRIES):
        place = target if target.exists() else _backup(target)
        try:
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        except NotADirectoryError:
            raise InputError(f"folder must name a model's folder, {folder} is a file") from None
        except FileNotFoundError:
            continue  # it was renamed between the two looks
        except OSError as error:
            raise InputError(f"folder {folder} cannot be opened: {error.strerror}") from None
        try:
            return [read_file(name, require, folder=handle) for name in names]
        except FileNotFoundError as error:
            if _is_at(handle, place):
                raise FileFormatError(
                    f"{folder} is not a model: it has no {error.filename}"
                ) from None
        except FileFormatError as error:
            raise FileFormatError(f"{folder} cannot be loaded: {error}") from None
        finally:
            os.close(handle)
    raise InputError(f"folder must name a model's folder, there is no {folder}")


def read_file(path: str | Path, require: Requirement, *, folder: int | None = None) -> bytes:
    """The content of a file that `require` accepts; a pipe or a device is refused, not waited for.

    A file that is not there is a FileNotFoundError; `folder` is an open one that has it.
    """
    name = os.path.basename(path)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise FileFormatError(f"{name} must be a file, it is something else")
            with open(handle, "rb", closefd=False) as file:
                require(name, file, status)
                return file.read(status.st_size)
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileFormatError(f"{name} cannot be read: {error.strerror}") from None


def _resolve(folder: str | os.PathLike[str]) -> Path:
    """The folder behind all links; of links that lead back to themselves, the first."""
    return Path(os.path.realpath(folder))


def _is_at(handle: int, place: Path) -> bool:
    """Whether the open folder still has its name."""
    try:
        return os.path.samestat(os.fstat(handle), place.stat())
    except FileNotFoundError:
        return False


def _backup(target: Path) -> Path:
    return target.parent / f".{target.name}.old"


def _temporary(target: Path, token: str) -> Path:
    """The name of a folder that is being filled or removed."""
    return target.parent / f".{target.name}.{token}.part"


def _fresh(target: Path) -> tuple[Path, int]:
    """A new empty folder beside the target, and the open handle that holds its lock."""
    while True:
        place = _temporary(target, secrets.token_hex(_TOKEN))
        place.mkdir()
        lock = _locked(place)
        if lock is not None:
            return place, lock


def _locked(place: Path) -> int | None:
    """A handle with the folder's lock, or None if another process has it or has removed it."""
    try:
        handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    if _is_at(handle, place):
        return handle
    os.close(handle)
    return None


def _discard(place: Path, target: Path) -> None:
    """Remove a folder under a temporary name, so that no reader sees half of it."""
    removed = _temporary(target, secrets.token_hex(_TOKEN))
    try:
        os.rename(place, removed)
    except FileNotFoundError:
        return
    shutil.rmtree(removed, ignore_errors=True)


def _sweep(target: Path) -> None:
    """Remove what killed processes were filling or removing."""
    pattern = _temporary(Path(glob.escape(target.name)), "[0-9a-f]" * 2 * _TOKEN).name
    for place in target.parent.glob(pattern):
        lock = _locked(place)
        if lock is not None:
            shutil.rmtree(place, ignore_errors=True)
            os.close(lock)


def require_replaceable(folder: str | os.PathLike[str], find_foreign: FindForeign) -> None:
    """Refuse to write where there is something that must not be removed."""
    target = _resolve(folder)
    if not target.parent.is_dir():
        raise InputError(f"folder must lie in an existing folder, there is no {target.parent}")
    if os.path.lexists(target) and not target.is_dir():
        kind = "a file" if target.exists() else "a link that leads back to itself"
        raise InputError(f"folder must name a folder, {target} is {kind}")
    for place in (target.parent, target):
        if place.exists() and not os.access(place, os.W_OK | os.X_OK):
            raise InputError(f"folder must lie where this process can write, {place} is read-only")
    require_movable(target)
    for place in (target, _backup(target)):
        _require_nothing_foreign(place, place, find_foreign)


def require_movable(folder: Path) -> None:
    """Refuse a folder that another cannot take the place of."""
    target = folder.resolve()
    if target.is_dir() and (target.is_mount() or _working_folder().is_relative_to(target)):
        raise InputError(
            f"folder must be one that can be replaced as a whole, {target} is a mount point or the "
            "folder in which this process works; name a folder in it"
        )


def _require_nothing_foreign(place: Path, target: Path, find_foreign: FindForeign) -> None:
    """Refuse a folder with anything foreign; `target` is what the message calls it."""
    if not place.exists() or not any(place.iterdir()):
        return
    foreign = find_foreign(place)
    if foreign is not None:
        raise InputError(
            "folder must be new or empty, or hold nothing but what is replaced; "
            f"{target} {foreign}; choose another folder"
        )


def present_folder(folder: str | os.PathLike[str]) -> Path:
    """Where a folder lies that may just be replaced, or whose replacement was killed."""
    target = Path(folder).absolute()
    backup = _backup(target.resolve())
    return target if target.exists() or not backup.exists() else backup


def make_work_folder(folder: Path) -> None:
    """Make a folder under a name that others can guess, or go on with the one that is there.

    A link is refused, and a folder of another user: its owner would be in charge of what is in it.
    """
    try:
        folder.mkdir()
    except FileExistsError:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise InputError(
                f"{folder} must be a folder of an earlier run, it is a link or belongs to another "
                "user; remove it"
            ) from None


def remove_own(folder: Path, own: re.Pattern[str]) -> None:
    """Remove files of a folder whose path in it matches, then folders without files; no others."""
    for place, folders, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(place, name)
            if own.fullmatch(os.path.relpath(path, folder)):
                path.unlink(missing_ok=True)
        for name in folders:
            with suppress(OSError):  # it holds something else, or is a link
                Path(place, name).rmdir()
    with suppress(OSError):
        folder.rmdir()


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # it was removed
        return Path("/")


def _settle(target: Path, find_foreign: FindForeign) -> None:
    """Finish what a kill in `_take_place` has left: restore the backup, or remove it."""
    backup = _backup(target)
    if not backup.exists():
        return
    if target.exists() and any(target.iterdir()) and find_foreign(target) is None:
        _discard(backup, target)
    else:
        os.replace(backup, target)


def _take_place(new: Path, target: Path, find_foreign: FindForeign) -> None:
    """Rename the new folder to the target; an old one becomes the backup."""
    backup = _backup(target)
    if target.exists():
        os.rename(target, backup)
    try:
        _require_nothing_foreign(backup, target, find_foreign)  # it may have changed by now
        os.rename(new, target)
    except BaseException:
        if backup.exists():
            os.rename(backup, target)
        raise
