"""Finished cells in the work folder: what a killed run has measured, and the models it has learned.

A cell is one way to make codes at one length. Its file is named by everything that its numbers
depend on and appears as a whole, so a run that is killed at any moment and started again finds
what is finished and goes on with the rest.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rankbits._files import write_atomically
from rankbits._folders import make_work_folder
from rankbits._json import seal, unseal
from rankbits.errors import FileFormatError, InputError

FORMAT, VERSION = "rankbits compression cell", 1


@contextmanager
def open_work_folder(target: Path) -> Iterator[Path]:
    """The folder beside the target that holds finished parts; one process has it at a time."""
    work = target.parent / f".{target.name}.work"
    make_work_folder(work)
    lock = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"out is being written by another process, {target}; wait until it has ended"
            ) from None
        yield work
    finally:
        os.close(lock)
        with suppress(OSError):  # it stays if anything is finished
            work.rmdir()


class CellStore:
    """Cells and models of one work folder, which is created if it is not there.

    Parameters
    ----------
    folder : Path
        The work folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, settings: dict[str, Any]) -> dict[str, Any] | None:
        """The cell of these very settings; None if there is none that can be read."""
        path = self._path(settings, ".json")
        try:
            cell = unseal(path.read_bytes(), path.name, FORMAT, VERSION)
        except (OSError, FileFormatError):
            return None
        return cell["content"] if cell["settings"] == _plain(settings) else None

    def put(self, settings: dict[str, Any], content: dict[str, Any]) -> None:
        """Write a cell."""
        cell = seal(FORMAT, VERSION, {"settings": _plain(settings), "content": content})
        with write_atomically(self._path(settings, ".json")) as file:
            file.write(cell)

    def cached(
        self, settings: dict[str, Any], compute: Callable[[], dict[str, Any]]
    ) -> tuple[dict[str, Any], bool]:
        """The cell of these settings and whether it was there already."""
        known = self.get(settings)
        if known is not None:
            return known, True
        content: dict[str, Any] = _plain(compute())
        self.put(settings, content)
        return content, False

    def model_folder(self, settings: dict[str, Any]) -> Path:
        """Where the model of these settings is, or will be."""
        return self._path(settings, ".model")

    def _path(self, settings: dict[str, Any], ending: str) -> Path:
        words = [str(settings[key]) for key in ("what", "method", "bytes") if key in settings]
        text = json.dumps(_plain(settings), sort_keys=True)
        name = "-".join([*words, hashlib.sha256(text.encode()).hexdigest()[:12]])
        return self.folder / f"{name}{ending}"


def _plain(value: Any) -> Any:
    """As JSON gives it back."""
    return json.loads(json.dumps(value, allow_nan=False))
