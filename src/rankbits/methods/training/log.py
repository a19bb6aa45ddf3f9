"""The log of a training: a file of JSON lines, one object for each epoch, as in `history_`."""

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from rankbits import _files
from rankbits.errors import InputError
from rankbits.methods.shallow.shared.progress import show_progress


class TrainingLog:
    """A file of JSON lines; without a path, nothing is written.

    A training that starts replaces the file. One that is resumed writes the epochs of its
    checkpoint again, so that no half-written line stays after a kill. A log that cannot be written
    is a warning, given once, and training goes on.
    """

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)

    def start(self, history: list[dict[str, Any]]) -> None:
        """Make the file hold exactly the epochs so far."""
        if self.path is not None:
            try:
                with _files.write_atomically(self.path) as file:
                    file.write("".join(map(_line, history)).encode())
            except OSError as error:
                self._give_up(error)

    def write(self, record: dict[str, Any]) -> None:
        """Append one epoch."""
        if self.path is not None:
            try:
                handle = _files.open_plain(self.path, os.O_WRONLY | os.O_APPEND)
                with open(handle, "a", encoding="utf-8") as file:
                    file.write(_line(record))
            except (OSError, InputError) as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        message = f"log {self.path} cannot be written ({error}); training goes on without it"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
        self.path = None


class ProgressCallback(Protocol):
    """What the trainer calls after each epoch."""

    def __call__(self, record: dict[str, Any]) -> None:
        """Show one more epoch."""


@contextmanager
def progress_bar(
    verbose: bool | str, n_epochs: int, unit: str = "epoch"
) -> Iterator[ProgressCallback]:
    """A bar on standard error if verbose, or if "auto" and standard error is a terminal."""
    with show_progress(verbose, unit, n_epochs) as advance:

        def show(record: dict[str, Any]) -> None:
            score = "" if record["score"] is None else f", score {record['score']:.4f}"
            advance(f"loss {record['loss']:.4f}{score}")

        yield show


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, allow_nan=False) + "\n"
