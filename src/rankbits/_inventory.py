"""Inventories: which files of a folder rankbits wrote, so that it never replaces any others.

The file `.rankbits.json` names them with their checksums. What it does not name, or what has
another checksum, is the user's: it is neither replaced nor removed.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rankbits._files import sync_file, sync_folder, write_atomically
from rankbits._json import seal, unseal
from rankbits.errors import FileFormatError, InputError

NAME = ".rankbits.json"
FORMAT, VERSION = "rankbits files", 1


def take_inventory(folder: Path) -> None:
    """List all files of a folder that is complete, and bring all of it to the disk."""
    files = {name: [_digest_of(folder / name)] for name in _names_in(folder)}
    for name in files:
        sync_file(folder / name)
    _write(folder, files)
    for place in folder.rglob("*"):
        if place.is_dir():
            sync_folder(place)


def find_foreign(folder: Path, changing: re.Pattern[str] | None = None) -> str | None:
    """What a folder is, or holds, beside unchanged files of its inventory; None if nothing.

    With `changing`, files of the inventory may have any content or be gone, and names that match it
    may have been added.
    """
    try:
        files = _read(folder)
    except FileFormatError as error:
        return f"holds something else: {error}"
    for name in _names_in(folder):
        if name == NAME or _is_left_by_readers(folder, name, files):
            continue
        if name not in files and not (changing and changing.fullmatch(name)):
            return f"holds something else, {name}"
        if changing is None and _digest_of(folder / name) not in files[name]:
            return f"was changed: {name} is not as it was written"
    missing = sorted(name for name in files if not os.path.lexists(folder / name))
    if missing and changing is None:
        return f"was changed: {missing[0]} is gone"
    return None


def require_own(folder: Path, names: Iterable[str]) -> None:
    """Refuse to write files of a folder that are there already and are not ours."""
    present = [name for name in names if os.path.lexists(folder / name)]
    files = _read(folder) if present and os.path.lexists(folder / NAME) else {}
    for name in present:
        if _digest_of(folder / name) not in files.get(name, []):
            raise InputError(
                f"{folder / name} would be replaced, but it is not as rankbits wrote it; move it "
                "away, or choose another folder"
            )


def write_own(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files under names that the user did not give; only our own are replaced.

    The inventory comes first and names what was there too, so that a kill in between leaves no
    file that a later run would take for the user's.
    """
    require_own(folder, contents)
    files = _read(folder) if os.path.lexists(folder / NAME) else {}
    for name, content in contents.items():
        before = [_digest_of(folder / name)] if os.path.lexists(folder / name) else []
        files[name] = [*before, hashlib.sha256(content).hexdigest()]
    _write(folder, files)
    for name, content in contents.items():
        with write_atomically(folder / name) as file:
            file.write(content)


def _names_in(folder: Path) -> list[str]:
    """Everything in a folder but sub-folders that hold something, in order; no link is followed."""
    return sorted(os.path.relpath(path, folder) for path in _leaves(folder))


def _leaves(folder: Path) -> Iterator[str]:
    entries = list(os.scandir(folder))
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from list(_leaves(Path(entry.path))) or [entry.path]
        else:
            yield entry.path


def _is_left_by_readers(folder: Path, name: str, files: Mapping[str, list[str]]) -> bool:
    """Whether SQLite made a file to read a database of ours: its index, or a log without content.

    A log with content is a change of the collection that is not yet in the database.
    """
    if name.endswith("-shm"):
        return name.removesuffix("-shm") in files
    is_log = name.endswith("-wal") and name.removesuffix("-wal") in files
    return is_log and os.lstat(folder / name).st_size == 0


def _digest_of(path: Path) -> str:
    """SHA-256 of a file, or a word for what is none; no link is followed."""
    mode = os.lstat(path).st_mode
    if not stat.S_ISREG(mode):
        return "folder" if stat.S_ISDIR(mode) else "neither file nor folder"
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(folder: Path) -> dict[str, list[str]]:
    """The digests of each file; a FileFormatError if there is no inventory that can be read."""
    path = folder / NAME
    if path.is_symlink() or not path.is_file():
        raise FileFormatError(f"there is no {path}, which names the files that rankbits wrote")
    record = unseal(path.read_bytes(), str(path), FORMAT, VERSION)
    files = record.get("files")
    if not isinstance(files, dict) or not all(isinstance(own, list) for own in files.values()):
        raise FileFormatError(f"{path} must name files and their checksums")
    return files


def _write(folder: Path, files: Mapping[str, list[str]]) -> None:
    with write_atomically(folder / NAME) as file:
        file.write(seal(FORMAT, VERSION, {"files": dict(sorted(files.items()))}))
