"""Encoding of files larger than memory: rows in blocks, codes to a file that grows, then its name.

Codes go to a partial .npy file beside the target; a mark next to it says of which model and inputs
they are, and how many rows had reached the disk. A run with the same model and inputs goes on from
there and gives the same file; any other run starts anew.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from rankbits._files import READ_ERRORS, open_own, sync_folder, write_atomically
from rankbits.codes import BinaryCodes, npy
from rankbits.codes.note import Note
from rankbits.codes.sides import ITEMS, QUERIES
from rankbits.datasets.blocks import Rows
from rankbits.datasets.names import names_path, write_names
from rankbits.errors import InputError

_N_BLOCKS = 4  # blocks of the method at a time, so that rows are grouped as in one call
_MARK_SECONDS = 2.0
_MARK_VERSION = 3


@dataclass(frozen=True)
class Encoded:
    """Rows in the finished file, and how many of them an earlier run had left."""

    n_rows: int
    n_resumed: int


def encode_files(
    hasher: Any,
    model: str | None,
    inputs: Sequence[Rows],
    out: str,
    side: str = ITEMS,
    names: Sequence[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Encoded:
    """Encode the rows of all inputs, in order, into one file of codes of any format.

    `side` says whether the rows are encoded as items or as queries.
    Names of the rows, if there are any, go to a text file beside it, which is there first.
    """
    if side == QUERIES:
        hasher.require_query_bits()
    step = _N_BLOCKS * hasher._block_rows(inputs[0].row_shape)
    n_rows = sum(rows.n_rows for rows in inputs)
    note = Note(int(hasher.n_bits_), model, side if hasher._has_query_map else None)
    head, trailer = npy.frame(n_rows, note)
    identities = [rows.identity() for rows in inputs]
    mark = ResumeMark(out, {"model": model, "side": side, "step": step, "inputs": identities})
    with _partial_file(out) as file:
        n_done = n_resumed = _start(file, mark, head, note.width)
        try:
            encode = hasher.encode_queries if side == QUERIES else hasher.encode
            for packed in _encoded_blocks(encode, inputs, n_done, step):
                file.write(packed.tobytes())
                n_done += len(packed)
                mark.keep_up(file, n_done)
                if progress is not None:
                    progress(n_done, n_rows)
        except InputError:  # rows that cannot be encoded: no later run can continue
            _beside(out, ".partial").unlink()
            mark.forget()
            raise
        file.write(trailer)
        if names is not None:
            write_names(names_path(out), names)
        _finish(file, out)
    mark.forget()
    return Encoded(n_rows, n_resumed)


class ResumeMark:
    """How much of the partial file is on the disk, and of which run it is: a file beside it."""

    def __init__(self, out: str, run: dict[str, Any]) -> None:
        self.path = _beside(out, ".partial.json")
        self.run = {"version": _MARK_VERSION, **run}
        self._last = time.monotonic()

    def rows(self) -> int:
        """Rows on the disk of just this run; 0 if there is no mark, or one of another run."""
        try:
            run = json.loads(self.path.read_bytes())
            n_rows = run.pop("rows")
        except (*READ_ERRORS, RecursionError):
            return 0
        return n_rows if run == self.run and type(n_rows) is int and n_rows > 0 else 0

    def keep_up(self, file: IO[bytes], n_rows: int) -> None:
        """Now and then, bring the rows to the disk and write how many they are."""
        if time.monotonic() - self._last < _MARK_SECONDS:
            return
        file.flush()
        os.fsync(file.fileno())
        with write_atomically(self.path) as mark:
            mark.write(json.dumps({**self.run, "rows": n_rows}).encode())
        self._last = time.monotonic()

    def forget(self) -> None:
        """Remove the mark."""
        self.path.unlink(missing_ok=True)


def _encoded_blocks(
    encode: Callable[[Any], BinaryCodes], inputs: Sequence[Rows], n_done: int, step: int
) -> Iterator[np.ndarray]:
    """Packed codes of the blocks that begin at row n_done of all inputs or later."""
    for rows in inputs:
        start = min(n_done, rows.n_rows)
        n_done -= start
        if start == rows.n_rows:
            continue
        for block in rows.blocks(start, step):
            try:
                yield np.asarray(encode(block).packed)
            except InputError as error:
                last = start + len(block) - 1
                raise InputError(f"{rows.path}, from row {start} to {last}: {error}") from None
            start += len(block)
        if start != rows.n_rows:
            raise InputError(
                f"{rows.path} changed while it was being read ({rows.n_rows} rows at first, now "
                f"{start}); run the command again"
            )


def _start(file: IO[bytes], mark: ResumeMark, head: bytes, width: int) -> int:
    """Prepare the partial file for appending; returns the rows in it, 0 if it starts anew."""
    n_done = mark.rows()
    end = len(head) + n_done * width
    file.seek(0)
    if n_done == 0 or os.fstat(file.fileno()).st_size < end or file.read(len(head)) != head:
        n_done, end = 0, len(head)
        mark.forget()
        file.seek(0)
        file.write(head)
        file.flush()
    file.truncate(end)
    file.seek(end)
    return n_done


@contextmanager
def _partial_file(out: str) -> Iterator[IO[bytes]]:
    """The partial file of a target, open to read and write, locked against other processes."""
    path = _beside(out, ".partial")
    with open(open_own(path, os.O_RDWR), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_free = os.path.samestat(os.fstat(file.fileno()), path.lstat())
        except (BlockingIOError, FileNotFoundError):  # locked, or renamed a moment ago
            is_free = False
        if not is_free:
            raise InputError(f"{out} is being written by another process; wait until it has ended")
        yield file


def _finish(file: IO[bytes], out: str) -> None:
    """Put the whole file on the disk, then under its name; other formats are written from it."""
    file.flush()
    os.fsync(file.fileno())
    path = _beside(out, ".partial")
    if not out.endswith(".npy"):
        BinaryCodes.load(path).save(out)
        path.unlink()
        return
    os.replace(path, out)
    sync_folder(Path(out).resolve().parent)


def _beside(out: str, ending: str) -> Path:
    target = Path(out)
    return target.parent / f".{target.name}{ending}"
