"""Encoding of files larger than memory: rows in blocks, codes to a file that grows, then its name.

Codes go to a partial file beside the target; a note next to it says of which model and inputs they
are, and how many rows had reached the disk. A run with the same model and inputs goes on from there
and gives the same file; any other run starts anew.
"""

import fcntl
import io
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from rankbits._check import extra
from rankbits._files import READ_ERRORS, write_atomically
from rankbits.codes import BinaryCodes
from rankbits.datasets._blocks import RowFile
from rankbits.errors import InputError

_N_BLOCKS = 4  # whole blocks of the method at a time: the same rows meet as in one call
_GROUP_ROWS = 1 << 16  # of a .parquet
_NOTE_SECONDS = 2.0
_NOTE_VERSION = 1


@dataclass(frozen=True)
class Encoded:
    """What a run did: rows in the file, and how many of them an earlier run had left."""

    n_rows: int
    n_resumed: int


def encode_files(
    hasher: Any,
    checksum: str,
    inputs: Sequence[RowFile],
    out: str,
    progress: Callable[[int, int], None] | None = None,
) -> Encoded:
    """Encode the rows of all inputs, in order, into one .npy or .parquet of codes."""
    step = _N_BLOCKS * hasher._block_rows(inputs[0].row_shape)
    n_rows, n_bits = sum(rows.n_rows for rows in inputs), int(hasher.n_bits_)
    head, tail = _frame(n_rows, n_bits)
    width = -(-n_bits // 8)
    note = Note(out, {"model": checksum, "step": step, "inputs": [_identity(r) for r in inputs]})
    with _partial_file(out) as file:
        n_done = n_resumed = _start(file, note, head, width)
        try:
            for packed in _coded(hasher, inputs, n_done, step):
                file.write(packed.tobytes())
                n_done += len(packed)
                note.keep_up(file, n_done)
                if progress is not None:
                    progress(n_done, n_rows)
        except InputError:  # rows that cannot be encoded: nobody will go on from here
            _beside(out, ".partial").unlink()
            note.forget()
            raise
        file.write(tail)
        _finish(file, out)
    note.forget()
    return Encoded(n_rows, n_resumed)


class Note:
    """What the partial file holds, kept in a small file beside it."""

    def __init__(self, out: str, of: dict[str, Any]) -> None:
        self.path = _beside(out, ".partial.json")
        self.of = {"version": _NOTE_VERSION, **of}
        self._last = time.monotonic()

    def rows(self) -> int:
        """Rows on the disk of just this run; 0 if there is no note, or one of another run."""
        try:
            found = json.loads(self.path.read_bytes())
            n_rows = found.pop("rows")
        except (*READ_ERRORS, RecursionError):
            return 0
        return n_rows if found == self.of and type(n_rows) is int and n_rows > 0 else 0

    def keep_up(self, file: IO[bytes], n_rows: int) -> None:
        """Now and then, once the rows are on the disk, note how many they are."""
        if time.monotonic() - self._last < _NOTE_SECONDS:
            return
        file.flush()
        os.fsync(file.fileno())
        with write_atomically(self.path) as note:
            note.write(json.dumps({**self.of, "rows": n_rows}).encode())
        self._last = time.monotonic()

    def forget(self) -> None:
        """Remove the note."""
        self.path.unlink(missing_ok=True)


def _coded(hasher: Any, inputs: Sequence[RowFile], n_done: int, step: int) -> Iterator[np.ndarray]:
    """Packed codes of the blocks that begin at row n_done of all inputs or later."""
    for rows in inputs:
        start = min(n_done, rows.n_rows)
        n_done -= start
        if start == rows.n_rows:
            continue
        for block in rows.blocks(start, step):
            try:
                yield np.asarray(hasher.encode(block).packed)
            except InputError as error:
                last = start + len(block) - 1
                raise InputError(f"{rows.path}, from row {start} to {last}: {error}") from None
            start += len(block)
        if start != rows.n_rows:
            raise InputError(f"{rows.path} must keep still, it had {rows.n_rows} rows, now {start}")


def _start(file: IO[bytes], note: Note, head: bytes, width: int) -> int:
    """Make the partial file ready to append: rows that it keeps, 0 if it begins anew."""
    n_done = note.rows()
    end = len(head) + n_done * width
    file.seek(0)
    if n_done == 0 or os.fstat(file.fileno()).st_size < end or file.read(len(head)) != head:
        n_done, end = 0, len(head)
        note.forget()
        file.seek(0)
        file.write(head)
        file.flush()
    file.truncate(end)
    file.seek(end)
    return n_done


@contextmanager
def _partial_file(out: str) -> Iterator[IO[bytes]]:
    """The partial file of a target, open to read and write, held against other processes."""
    path = _beside(out, ".partial")
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_free = os.path.samestat(os.fstat(file.fileno()), path.stat())
        except (BlockingIOError, FileNotFoundError):  # held, or given its final name just now
            is_free = False
        if not is_free:
            raise InputError(f"{out} is being written by another process; wait for it")
        yield file


def _finish(file: IO[bytes], out: str) -> None:
    """Put the whole file on the disk, then under its name, as .npy or as .parquet."""
    file.flush()
    os.fsync(file.fileno())
    path = _beside(out, ".partial")
    if out.endswith(".parquet"):
        _write_parquet(BinaryCodes.load(path), out)
        path.unlink()
        return
    os.replace(path, out)
    folder = os.open(Path(out).resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write_parquet(codes: BinaryCodes, out: str) -> None:
    """One column `codes` of bytes of one length; n_bits stands in the schema's metadata."""
    pa = extra("pyarrow", "writing .parquet", "files")
    parquet = extra("pyarrow.parquet", "writing .parquet", "files")
    width = codes.packed.shape[1]
    kind = pa.binary(width)
    schema = pa.schema([("codes", kind)], metadata={"rankbits:n_bits": str(codes.n_bits)})
    with write_atomically(out) as file, parquet.ParquetWriter(file, schema) as writer:
        for start in range(0, len(codes), _GROUP_ROWS):
            block = codes.packed[start : start + _GROUP_ROWS]
            column = pa.FixedSizeBinaryArray.from_buffers(
                kind, len(block), [None, pa.py_buffer(block.tobytes())]
            )
            writer.write_table(pa.table([column], schema=schema))


def _frame(n_rows: int, n_bits: int) -> tuple[bytes, bytes]:
    """What `BinaryCodes.save` writes before and after the codes of so many rows."""
    width = -(-n_bits // 8)
    no_rows = io.BytesIO()
    header = {"descr": "|u1", "fortran_order": False, "shape": (n_rows, width)}
    np.lib.format.write_array_header_2_0(no_rows, header)
    return no_rows.getvalue(), b"rankbits:n_bits=%d\n" % n_bits


def _identity(rows: RowFile) -> dict[str, Any]:
    """What tells an input from another, without reading it."""
    stat = os.stat(rows.path)
    return {
        "path": os.path.abspath(rows.path),
        "key": rows.key,
        "size": stat.st_size,
        "mtime_ns": stat.st_mtime_ns,
        "shape": [rows.n_rows, *rows.row_shape],
    }


def _beside(out: str, ending: str) -> Path:
    target = Path(out)
    return target.parent / f".{target.name}{ending}"
