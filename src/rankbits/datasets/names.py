"""Names of rows in a text file, a line for each row, beside the file of their codes."""

import os
from collections.abc import Sequence

from rankbits._files import require_file, write_atomically
from rankbits.errors import FileFormatError


def names_path(codes: str) -> str:
    """The file of names that belongs to a file of codes.

    >>> names_path("photos/codes.npy")
    'photos/codes.names.txt'
    """
    return f"{os.path.splitext(codes)[0]}.names.txt"


def write_names(path: str, names: Sequence[str]) -> None:
    """Write names that have no line breaks; bytes that are not UTF-8 stay as they are."""
    with write_atomically(path) as file:
        file.writelines(f"{name}\n".encode("utf-8", "surrogateescape") for name in names)


def load_names(path: str | os.PathLike[str]) -> list[str]:
    """Names of rows, one on each line of a text file in UTF-8."""
    file = require_file(path, "a file of names")
    with open(file, "rb") as stream:
        content = stream.read()
    if b"\0" in content:
        raise FileFormatError(f"{file} must hold a name on each line, it is not a text file")
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]
