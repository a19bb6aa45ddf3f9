"""Writing files so that a kill at any moment leaves the old file or the new one, never a part.

The bytes go to a temporary name in the same folder, are flushed to the disk, and take the final
name in one rename. Beside it stands what reading a damaged file can raise.
"""

import lzma
import os
import secrets
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rankbits.errors import InputError

READ_ERRORS = (  # what the readers of .npy and .npz raise on a damaged or foreign file
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file to write; it appears under `path` only if the block ends without an error.

    >>> with write_atomically("numbers.txt") as file:  # doctest: +SKIP
    ...     file.write(b"1 2 3")
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"path must name a file, {target} is a folder")
    if not target.parent.is_dir():
        raise InputError(f"path must lie in an existing folder, there is no {target.parent}")
    handle, temporary = _create_beside(target)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def one_line(error: BaseException) -> str:
    """What an error of another library says, without its line breaks."""
    return " ".join(str(error).split())


def _create_beside(target: Path) -> tuple[int, Path]:
    """A new file in the same folder, open to write; the system applies the process's umask.

    The umask cannot be read without setting it, which other threads would notice.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    while True:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            return os.open(temporary, flags, 0o666), temporary
        except FileExistsError:
            continue


def sync_folder(folder: Path) -> None:
    """Make the rename itself durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
