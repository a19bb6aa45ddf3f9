"""Memory that is mapped from a file, and whether the file still holds all of it.

Reading a page that a truncated file no longer has kills the process (SIGBUS), so the size of the
file is checked before mapped memory is handed out. The check is one `fstat`; a file that shrinks
after it can still do harm.
"""

import mmap
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits.errors import FileFormatError


@dataclass(frozen=True, slots=True)
class MappedFile:
    """The mapping behind an array and the bytes that its file must have."""

    mapping: mmap.mmap
    n_bytes: int
    name: str

    @classmethod
    def behind(cls, array: np.ndarray) -> "MappedFile | None":
        """What an array is mapped from; None if its memory has no file behind it."""
        owner: Any = array
        start, name = 0, "the file behind the codes"
        while not isinstance(owner, mmap.mmap):
            if isinstance(owner, np.memmap) and owner.offset is not None:
                start = owner.offset - owner.offset % mmap.ALLOCATIONGRANULARITY
                name = str(owner.filename or name)
            owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
            if owner is None:
                return None
        try:
            owner.size()
        except (OSError, ValueError):  # anonymous memory
            return None
        return cls(owner, start + len(owner), name)

    def require_whole(self) -> None:
        """Refuse memory whose file has become shorter than what is mapped of it."""
        size = self.mapping.size()
        if size < self.n_bytes:
            raise FileFormatError(
                f"{self.name} was truncated while it was mapped ({self.n_bytes} bytes at first, "
                f"now {size}); write the file again and load it anew"
            )
