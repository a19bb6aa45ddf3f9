"""What of an encoding is complete: a JSON file that the driver keeps up to date.

It says of which run it is: model, side, blocks and inputs. Another run with the same goes on from
there; for any other, the output exists already.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rankbits._files import READ_ERRORS, write_atomically
from rankbits.errors import FileFormatError, InputError

FORMAT, VERSION = "rankbits encoding", 1
NAME = "manifest.json"
_SECONDS = 1.0  # between two times that it is written


class EncodingManifest:
    """The parts and files that are complete, each with the checksum of its codes.

    Parameters
    ----------
    folder : Path
        Where it lies.
    run : dict
        What tells this run from another, as JSON holds it.
    n_rows : int
        Rows of a part.
    """

    def __init__(self, folder: Path, run: dict[str, Any], n_rows: int) -> None:
        self.path = folder / NAME
        self.run = run
        self.rows_per_part = n_rows
        self.parts: dict[str, int] = {}
        self.outputs: dict[str, dict[str, int]] = {}
        self._last = time.monotonic()

    @classmethod
    def resume(cls, folder: Path, run: dict[str, Any]) -> "EncodingManifest | None":
        """That of an earlier run with the same model and inputs; None if there is none."""
        path = folder / NAME
        if not path.exists():
            return None
        record = _read(path)
        if record["run"] != run:
            differing = " and ".join(k for k in run if record["run"].get(k) != run[k])
            raise InputError(
                f"out must be new, {folder} holds codes of a run with other {differing}; remove it "
                "or choose another"
            )
        if record["is_complete"]:
            raise InputError(
                f"out must be new, {folder} holds the complete codes of this very run; remove it "
                "to encode again"
            )
        manifest = cls(folder, run, record["rows_per_part"])
        manifest.parts, manifest.outputs = record["parts"], record["outputs"]
        return manifest

    def keep_up(self) -> None:
        """Write it now and then."""
        if time.monotonic() - self._last >= _SECONDS:
            self.write()

    def write(self, *, is_complete: bool = False) -> None:
        """Write it, in one step."""
        from rankbits import __version__

        record = {
            "format": FORMAT,
            "version": VERSION,
            "rankbits": __version__,
            "is_complete": is_complete,
            "run": self.run,
            "rows_per_part": self.rows_per_part,
            "outputs": self.outputs,
            "parts": {} if is_complete else self.parts,
        }
        with write_atomically(self.path) as file:
            file.write((json.dumps(record, indent=1) + "\n").encode())
        self._last = time.monotonic()


def _read(path: Path) -> dict[str, Any]:
    """The record in a manifest; anything else is refused."""
    try:
        record = json.loads(path.read_bytes())
        is_known = (record["format"], record["version"]) == (FORMAT, VERSION)
        fields = ("run", "rows_per_part", "parts", "outputs", "is_complete")
        is_known = is_known and all(field in record for field in fields)
    except (*READ_ERRORS, RecursionError):
        is_known = False
    if not is_known:
        raise FileFormatError(
            f"out must be new, or what an encoding has left; {path} is not its manifest"
        )
    assert isinstance(record, dict)  # noqa: S101
    return record


@contextmanager
def locked(folder: Path, out: str) -> Iterator[None]:
    """Keep other processes from writing the same output."""
    with open(os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"out must not be in use, {out} is being written by another process"
            ) from None
        yield
