"""What of an encoding is complete: a JSON file that the driver keeps up to date.

It says of which run it is: model, side, blocks and inputs. Another run with the same goes on from
there; for any other, the output exists already.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rankbits._files import one_line, open_plain, write_atomically
from rankbits._json import seal, unseal
from rankbits.errors import FileFormatError, InputError

FORMAT, VERSION = "rankbits encoding", 2
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
            "rankbits": __version__,
            "is_complete": is_complete,
            "run": self.run,
            "rows_per_part": self.rows_per_part,
            "outputs": self.outputs,
            "parts": {} if is_complete else self.parts,
        }
        with write_atomically(self.path) as file:
            file.write(seal(FORMAT, VERSION, record))
        self._last = time.monotonic()


def _read(path: Path) -> dict[str, Any]:
    """The record in a manifest; anything else is refused."""
    try:
        record = unseal(path.read_bytes(), str(path), FORMAT, VERSION)
        _require_fields(record, path)
    except (FileFormatError, OSError) as error:
        raise FileFormatError(
            f"out must be new, or what an encoding has left; {one_line(error)}"
        ) from None
    return record


def _require_fields(record: dict[str, Any], path: Path) -> None:
    """Refuse a manifest whose fields are not of their kinds, whoever has made it up."""
    kinds = {"is_complete": bool, "run": dict, "outputs": dict, "parts": dict, "rows_per_part": int}
    for name, kind in kinds.items():
        if type(record.get(name)) is not kind:
            raise FileFormatError(f"{path} has {record.get(name)!r:.40} as its {name}")
    if record["rows_per_part"] < 1:
        raise FileFormatError(f"{path} has {record['rows_per_part']} rows in a part")
    if not all(type(checksum) is int for checksum in record["parts"].values()):
        raise FileFormatError(f"{path} must have a number as the checksum of each part")


@contextmanager
def locked(folder: Path, out: str) -> Iterator[None]:
    """Keep other processes from writing the same output."""
    with open(open_plain(folder / "lock", os.O_RDWR), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"out must not be in use, {out} is being written by another process"
            ) from None
        yield
