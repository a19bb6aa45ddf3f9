"""The files of an open database, and whether they still lie at their names.

SQLite goes on with files that were deleted, renamed or replaced: what it commits then is gone when
it closes them. So each use of a connection first compares what lies at the names with what lay
there when it was opened.
"""

import os
from pathlib import Path

from rankbits._files import status_of
from rankbits.errors import FileFormatError

_BESIDE = ("-wal", "-shm")


class OpenFiles:
    """What lies at the names of a database, its log and the index of its log."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._identity = self._database()[:2]
        self._content: tuple[int, ...] = ()
        self._beside: dict[str, tuple[int, int]] = {}

    def note_content(self) -> None:
        """Remember when the database was written, and that whoever asks knows what it holds."""
        self._content = self._database()[2:]

    def note_beside(self) -> None:
        """Remember what lies beside the database, which was opened just now."""
        self._beside = self._identities_beside()
        self.require()

    def require(self) -> None:
        """Raise unless everything lies where it was opened."""
        if self._database()[:2] != self._identity:
            raise self._refusal(str(self._path))
        beside = self._identities_beside()
        for path, identity in self._beside.items():
            if beside.get(path) != identity:
                raise self._refusal(path)

    def is_written(self) -> bool:
        """Whether the database was written since that was last noted, or has a log since."""
        if self._database()[2:] != self._content:
            return True
        return self._identities_beside().keys() != self._beside.keys()

    def has_log(self) -> bool:
        """Whether there is a log."""
        return f"{self._path}-wal" in self._identities_beside()

    def _database(self) -> tuple[int, ...]:
        status = status_of(self._path)
        if status is None:
            raise self._refusal(str(self._path))
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

    def _identities_beside(self) -> dict[str, tuple[int, int]]:
        paths = [f"{self._path}{ending}" for ending in _BESIDE]
        statuses = {path: status_of(path) for path in paths}
        return {path: (s.st_dev, s.st_ino) for path, s in statuses.items() if s}

    def _refusal(self, path: str) -> FileFormatError:
        return FileFormatError(
            f"{self._path.parent} has to be opened again: {path} was deleted or replaced since; "
            "nothing was changed by this call"
        )


def is_writable(folder: Path) -> bool:
    """Whether this process may make files in a folder, as far as permissions go."""
    is_effective = os.access in os.supports_effective_ids
    return os.access(folder, os.W_OK | os.X_OK, effective_ids=is_effective)
