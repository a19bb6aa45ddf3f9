"""What workers do for an encoding: encode the rows of a part, and join parts to a file.

Both can be run again at any time: files appear under their names as a whole.
"""

import filecmp
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from rankbits._files import sync_folder
from rankbits.codes import BinaryCodes, files, stored
from rankbits.codes.note import Note, shorten
from rankbits.codes.sides import QUERIES
from rankbits.datasets.blocks import RowFile
from rankbits.distributed._parts import InputPart, Target
from rankbits.errors import InputError


@dataclass(frozen=True)
class EncodeJob:
    """What all tasks of an encoding need to know.

    Attributes
    ----------
    model, fingerprint : str
        Folder of the model, and what it must turn out to be.
    work : str
        Folder of the parts.
    note : Note
        What the files say of their codes.
    side : str
        Whether rows are encoded as items or as queries.
    step : int
        Rows that are encoded at once.
    """

    model: str
    fingerprint: str
    work: str
    note: Note
    side: str
    step: int


def encode_part(job: EncodeJob, rows: RowFile, part: InputPart) -> int:
    """Encode the rows of a part and write its file; returns the checksum of its codes."""
    hasher = _load_model(job.model, job.fingerprint)
    encode = hasher.encode_queries if job.side == QUERIES else hasher.encode
    packed = np.concatenate(list(_encoded(encode, rows, part, job.step)))
    if len(packed) != part.n_rows:
        raise InputError(
            f"{rows.path} changed while it was being read ({part.stop} rows at first, now "
            f"{part.start + len(packed)}); run the job again"
        )
    path = os.path.join(job.work, part.name)
    files.write_codes(path, job.note, len(packed), files.in_blocks(packed))
    return checksum(packed)


def checksum(packed: np.ndarray, before: int = 0) -> int:
    """CRC-32 of packed codes, after those with the checksum `before`."""
    return zlib.crc32(np.ascontiguousarray(packed).data, before)


def _encoded(encode: Any, rows: RowFile, part: InputPart, step: int) -> Iterator[np.ndarray]:
    """Packed codes of a part, block by block."""
    start, n_blocks = part.start, -(-part.n_rows // step)
    for block in islice(rows.blocks(part.start, step), n_blocks):
        try:
            yield np.asarray(encode(block).packed)
        except InputError as error:
            last = start + len(block) - 1
            raise InputError(f"{rows.path}, from row {start} to {last}: {error}") from None
        start += len(block)


@lru_cache(maxsize=1)
def _load_model(folder: str, fingerprint: str) -> Any:
    """The model, loaded once in each worker."""
    from rankbits import methods

    hasher = methods.load(folder)
    current = methods.fingerprint(hasher)
    if current != fingerprint:
        raise InputError(
            f"model must stay the same while it encodes, {folder} holds {shorten(str(current))} "
            f"on this machine and {shorten(fingerprint)} where the job was started"
        )
    return hasher


def join_parts(job: EncodeJob, target: Target, checksums: Mapping[str, int]) -> int:
    """Write a file of codes from its parts; returns the checksum of its codes."""
    total = 0

    def blocks() -> Iterable[np.ndarray]:
        nonlocal total
        for block in _regrouped(_part_codes(job, part, checksums) for part in target.parts):
            total = checksum(block, total)
            yield block

    aside = Path(job.work) / f"joined-{os.path.basename(target.path)}"
    files.write_codes(aside, job.note, target.n_rows, blocks())
    if os.path.lexists(target.path) and not filecmp.cmp(aside, target.path, shallow=False):
        aside.unlink()
        raise InputError(f"out must be new, {target.path} came there meanwhile; move it away")
    os.replace(aside, target.path)
    sync_folder(Path(target.path).absolute().parent)
    return total


def _part_codes(job: EncodeJob, part: InputPart, checksums: Mapping[str, int]) -> np.ndarray:
    """The codes of a part, which must be those that were written."""
    path = os.path.join(job.work, part.name)
    packed = np.array(BinaryCodes.load(path).packed)  # what is verified, not what the file becomes
    if checksum(packed) != checksums[part.name]:
        raise InputError(f"{path} is damaged: its checksum does not match; remove it and run again")
    return packed


def _regrouped(parts: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """The same rows in blocks as files of codes are written in, so that files have equal bytes."""
    waiting = None
    for part in parts:
        packed = part if waiting is None else np.concatenate([waiting, part])
        n_whole = len(packed) // stored.BLOCK * stored.BLOCK
        for start in range(0, n_whole, stored.BLOCK):
            yield packed[start : start + stored.BLOCK]
        waiting = packed[n_whole:]
    if waiting is not None and len(waiting):
        yield waiting
