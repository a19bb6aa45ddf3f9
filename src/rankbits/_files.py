"""Writing files so that a kill at any moment leaves the old file or the new one, never a part.

The bytes go to a temporary name in the same folder, are flushed to the disk, and take the final
name in one rename. Beside it stands how a missing or damaged file is refused.
"""

import errno
import lzma
import os
import secrets
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rankbits.errors import FileFormatError, InputError, RankbitsError

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
# What a file system without hard links says to one.
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}


@contextmanager
def write_atomically(
    path: str | os.PathLike[str], *, may_replace: bool = True, mode: int = 0o666
) -> Iterator[IO[bytes]]:
    """Open a file to write; it appears under `path` only if the block ends without an error.

    With `may_replace=False`, a file that exists already is a FileExistsError. The file has the
    permissions of `mode` that the umask of the process leaves, as files of any program.

    >>> with write_atomically("numbers.txt") as file:  # doctest: +SKIP
    ...     file.write(b"1 2 3")
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"path must name a file, {target} is a folder")
    if not target.parent.is_dir():
        raise InputError(f"path must lie in an existing folder, there is no {target.parent}")
    handle, temporary = _create_beside(target, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if may_replace:
            os.replace(temporary, target)
        else:
            _rename_new(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def _rename_new(source: Path, target: Path) -> None:
    """Rename a file to a new name; linking it first fails if the name is taken."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if status_of(target):  # looking first must do
            raise FileExistsError(f"{target} exists already") from None
        os.replace(source, target)
        return
    source.unlink()


def one_line(error: BaseException) -> str:
    """What an error of another library says, without its line breaks."""
    return " ".join(str(error).split())


def status_of(path: str | os.PathLike[str]) -> os.stat_result | None:
    """What lies at a name, not followed if it is a link; None if there is nothing.

    Where the storage fails this is an OSError: what cannot be looked at is not missing.
    """
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def require_file(path: str | os.PathLike[str], what: str) -> str:
    """The name of a file that is there; `what` says in words which file it must be."""
    name = os.fspath(path)
    if os.path.isdir(name):
        raise InputError(f"path must name {what}, {name} is a folder")
    if not os.path.isfile(name):
        raise InputError(f"path must name {what}, there is no {name}")
    return name


def signature_of(handle: int) -> tuple[int, int]:
    """The size of an open file and the time of its last write, in nanoseconds."""
    status = os.fstat(handle)
    return status.st_size, status.st_mtime_ns


@contextmanager
def unreadable_files_refused(path: str, kind: str) -> Iterator[None]:
    """Turn whatever a library says about a damaged file into one sentence of ours."""
    try:
        yield
    except RankbitsError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged file makes its reader raise anything
        reason = one_line(error)[:200] or type(error).__name__
        raise FileFormatError(f"{path} is not a readable {kind} file: {reason}") from None


def _create_beside(target: Path, mode: int) -> tuple[int, Path]:
    """A new file in the same folder, open to write; the system applies the process's umask.

    Nobody can guess its name, and a link of that name is not followed (O_EXCL). The umask cannot
    be read without setting it, which other threads would notice.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    while True:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            return os.open(temporary, flags, mode), temporary
        except FileExistsError:
            continue


def open_plain(path: Path, flags: int) -> int:
    """Open, or create, a plain file whose name others can guess; no link is followed."""
    flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise
        raise InputError(f"{path} must be a plain file, it is something else") from None
    if not stat.S_ISREG(_status_or_close(handle).st_mode):
        os.close(handle)
        raise InputError(f"{path} must be a plain file, it is something else")
    return handle


def _status_or_close(handle: int) -> os.stat_result:
    """What an open file is; it is closed where the system cannot tell."""
    try:
        return os.fstat(handle)
    except OSError:
        os.close(handle)
        raise


def open_own(path: Path, flags: int) -> int:
    """Open, or create, a file that a later run continues, and that is written to in place.

    What belongs to somebody else, or has another name too, is refused: writing to it would change
    what is not ours, or leave its owner in charge of the result.
    """
    with suppress(FileExistsError):
        return open_plain(path, flags | os.O_EXCL)
    handle = open_plain(path, flags)
    status = _status_or_close(handle)
    if (status.st_nlink, status.st_uid) == (1, os.geteuid()):
        return handle
    os.close(handle)
    raise InputError(
        f"{path} must be a file of an earlier run, it belongs to another user or has several "
        "names; remove it"
    )


def sync_folder(folder: Path) -> None:
    """Make names of files durable: what was created, renamed or deleted in a folder."""
    sync_file(folder)


def sync_file(path: Path) -> None:
    """Make what was written to a file durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
