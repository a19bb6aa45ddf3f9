"""The files of an open database, and whether they still lie at their names.

SQLite goes on with files that were deleted, renamed or replaced: what it commits then is gone when
it closes them. So each use of a connection first compares what lies at the names with what lay
there when it was opened.
"""

import os
import time
from pathlib import Path

from rankbits._files import status_of
from rankbits.errors import FileFormatError

_BESIDE = ("-wal", "-shm")
_TICKS_NS = 50_000_000  # the clock of a file system ticks every 4 to 10 ms
Identity = tuple[int, int]  # device and inode


class OpenFiles:
    """What lies at the names of a database, its log and the index of its log."""

    def __init__(self, path: Path) -> None:
        self._path = os.path.abspath(path)
        self._folder = os.path.dirname(self._path)
        self._names: tuple[int, int, int] | None = None  # of the folder, when all was in its place
        self._paths_beside = [f"{self._path}{ending}" for ending in _BESIDE]
        status = self._status()
        self._identity = status.st_dev, status.st_ino
        self._content: tuple[int, int] = (0, 0)
        self._beside: list[Identity | None] = []

    def note_content(self) -> None:
        """Remember when the database was written, and that whoever asks knows what it holds."""
        status = self._status()
        self._content = status.st_size, status.st_mtime_ns

    def note_beside(self) -> None:
        """Remember what lies beside the database, which was opened just now."""
        self._names = None
        self._beside = self._identities_beside()
        self.is_written()

    def is_written(self) -> bool:
        """Whether the database was written since that was last noted, or has a log since.

        Raises unless everything lies where it was opened. Each search asks, so it looks once.
        """
        status = self._status()
        if (status.st_dev, status.st_ino) != self._identity:
            raise self._refusal(self._path)
        if not self._has_other_names():
            return (status.st_size, status.st_mtime_ns) != self._content
        beside = self._identities_beside()
        if beside != self._beside:
            self._names = None
            for path, before, now in zip(self._paths_beside, self._beside, beside, strict=True):
                if before is not None and now != before:
                    raise self._refusal(path)
            return True
        return (status.st_size, status.st_mtime_ns) != self._content

    def _has_other_names(self) -> bool:
        """Whether names in the folder may have changed since the last time that they had not.

        A folder tells when it was written, in ticks of a clock: what happens in the tick of the
        last write that was seen leaves no trace.
        """
        status = os.stat(self._folder)
        names = status.st_dev, status.st_ino, status.st_mtime_ns
        if names == self._names:
            return False
        is_old = abs(time.time_ns() - status.st_mtime_ns) > _TICKS_NS
        self._names = names if is_old else None
        return True

    def has_log(self) -> bool:
        """Whether there is a log."""
        return self._identities_beside()[0] is not None

    def _status(self) -> os.stat_result:
        status = status_of(self._path)
        if status is None:
            raise self._refusal(self._path)
        return status

    def _identities_beside(self) -> list[Identity | None]:
        statuses = [status_of(path) for path in self._paths_beside]
        return [None if s is None else (s.st_dev, s.st_ino) for s in statuses]

    def _refusal(self, path: str) -> FileFormatError:
        return FileFormatError(
            f"{self._folder} has to be opened again: {path} was deleted or replaced since; nothing "
            "was changed by this call"
        )


def is_writable(folder: Path) -> bool:
    """Whether this process may make files in a folder, as far as permissions go."""
    is_effective = os.access in os.supports_effective_ids
    return os.access(folder, os.W_OK | os.X_OK, effective_ids=is_effective)
