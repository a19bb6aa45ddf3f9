"""The one writer of a collection.

The lock belongs to the process that took it and to the file that lay there then. A process that was
forked from it, or whose lock file was deleted, is no longer the writer and is told so before it
changes anything.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from rankbits._files import open_plain, status_of
from rankbits.errors import FileFormatError, InputError, RankbitsError
from rankbits.index.disk import layout


class WriterLock:
    """Held from its making until `release`, or until the process ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder.absolute() / layout.LOCK
        self._process = os.getpid()
        with layout.failures(folder, "locked"):
            self._file = open_plain(self._path, os.O_RDWR)
            try:
                self._take()
            except BaseException:
                self.release()
                raise

    def _take(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"folder must have one writer at a time, {self._folder} has one already; close it "
                "first, or open without writable=True to search"
            ) from None
        if not self._is_in_place():
            raise RankbitsError(
                f"{self._folder} could not be locked: {layout.LOCK} was deleted at that moment; "
                "try again"
            )

    def _is_in_place(self) -> bool:
        status = status_of(self._path)
        return status is not None and os.path.samestat(os.fstat(self._file), status)

    def require(self) -> None:
        """Raise unless this process is still the writer."""
        if os.getpid() != self._process or not self._is_in_place():
            raise FileFormatError(
                f"{self._folder} has to be opened again: {self._path} was deleted or replaced "
                "since, so another process may be writing; nothing was changed by this call"
            )

    def release(self) -> None:
        """Let others write. A forked process does not let go of what its parent has."""
        if os.getpid() == self._process:
            with suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)  # closing alone would leave it to forks
            with suppress(OSError):  # a descriptor is gone also where closing it fails
                os.close(self._file)
