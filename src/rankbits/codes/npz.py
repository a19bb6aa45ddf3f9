"""Code files of NumPy's format .npz: arrays `codes`, `n_bits`, if known `ids`, `model`, `side`.

Arrays are written and read in blocks, and np.load() reads the file too. ZIP keeps a checksum of
each array, so a flipped bit is found.
"""

import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from rankbits._files import unreadable_files_refused
from rankbits._unpacking import require_unpackable_npz
from rankbits.codes import stored
from rankbits.codes.note import Note
from rankbits.codes.stored import CODES, IDS, MODEL, N_BITS, SIDE, Block, StoredCodes
from rankbits.errors import FileFormatError

_Reader = Callable[[int, int], np.ndarray]


def write(
    file: IO[bytes],
    note: Note,
    n: int,
    blocks: Iterable[np.ndarray],
    ids: np.ndarray | None = None,
) -> None:
    """Write n codes, a block at a time."""
    width = note.width
    with zipfile.ZipFile(file, "w") as archive:
        with _entry(archive, N_BITS, (), "<i8") as out:
            out.write(np.array(note.n_bits, "<i8").tobytes())
        for name, text in ((MODEL, note.model), (SIDE, note.side)):
            if text is not None:
                with _entry(archive, name, (), f"<U{len(text)}") as out:
                    out.write(text.encode("utf-32-le"))
        if ids is not None:
            with _entry(archive, IDS, (n,), "<i8") as out:
                for start in range(0, n, stored.BLOCK):
                    out.write(ids[start : start + stored.BLOCK].astype("<i8").tobytes())
        with _entry(archive, CODES, (n, width), "|u1") as out:
            for block in stored.checked_blocks(n, width, blocks):
                out.write(block.data)


def read_note(path: str) -> Note | None:
    """What a file says about its codes; None if it says nothing."""
    with unreadable_files_refused(path, ".npz"), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if not {f"{CODES}.npy", f"{N_BITS}.npy"} <= set(names):
            return None
        return _note(archive, path)


@contextmanager
def open_codes(path: str) -> Iterator[StoredCodes]:
    """The codes of a file, whose ids and note may be missing."""
    with unreadable_files_refused(path, ".npz"), zipfile.ZipFile(path) as archive:
        inside = archive.namelist()
        for entry in inside:
            archive.open(entry).close()  # fails if directory and array differ in the name
        require_unpackable_npz(path, archive, (CODES, IDS, N_BITS, MODEL, SIDE))
        if f"{CODES}.npy" not in inside:
            raise FileFormatError(f"{path} must hold the array {CODES!r}, it holds {inside}")
        note = _note(archive, path)
        with archive.open(f"{CODES}.npy") as file:
            shape, dtype, read_codes = _opened(file, f"{path}, {CODES}")
            stored.require_packed(path, dtype, shape)
            if f"{IDS}.npy" not in inside:
                blocks = _blocks(shape[0], None, read_codes)
                yield StoredCodes(path, note, shape[1], blocks)
                return
            with archive.open(f"{IDS}.npy") as id_file:
                read_ids = _opened_ids(id_file, path, shape[0])
                yield StoredCodes(path, note, shape[1], _blocks(shape[0], read_ids, read_codes))


def _note(archive: zipfile.ZipFile, path: str) -> Note:
    require_unpackable_npz(path, archive, (N_BITS, MODEL, SIDE))
    n_bits = _scalar(archive, N_BITS, "iu", "one integer", path)
    model = _scalar(archive, MODEL, "U", "one text", path)
    side = _scalar(archive, SIDE, "U", "one text", path)
    return Note.parse(n_bits, model, side, path)


def _scalar(
    archive: zipfile.ZipFile, name: str, kinds: str, expected: str, path: str
) -> str | None:
    """A single value of the archive as text, None if it is not there."""
    if f"{name}.npy" not in archive.namelist():
        return None
    with archive.open(f"{name}.npy") as file:
        value = np.lib.format.read_array(file, allow_pickle=False)
    if value.shape != () or value.dtype.kind not in kinds:
        raise FileFormatError(f"{path} must hold {name} as {expected}, got {value.dtype}")
    return str(value)


def _opened_ids(file: IO[bytes], path: str, n: int) -> _Reader:
    shape, dtype, read = _opened(file, f"{path}, {IDS}")
    if shape != (n,) or dtype.kind not in "iu":
        raise FileFormatError(
            f"{path} must hold an integer id for each of {n} codes, got {dtype} of shape {shape}"
        )
    return read


def _blocks(n: int, read_ids: _Reader | None, read_codes: _Reader) -> Iterator[Block]:
    """Blocks of both arrays; the last reads run to the end, where ZIP compares checksums."""
    for start in range(0, n + 1, stored.BLOCK):
        size = min(stored.BLOCK, n - start)
        ids = None if read_ids is None else read_ids(start, size)
        packed = read_codes(start, size)
        if size:
            yield ids, packed


def _entry(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], descr: str) -> IO[bytes]:
    """An array of the archive, open behind its header; ZIP64, since its size may pass 4 GB."""
    info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
    out = archive.open(info, "w", force_zip64=True)
    np.lib.format.write_array_header_1_0(
        out, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return out


def _opened(file: IO[bytes], what: str) -> tuple[tuple[int, ...], np.dtype[Any], _Reader]:
    """Shape and dtype of an array in the archive, and a reader of its next rows."""
    is_first = np.lib.format.read_magic(file) == (1, 0)
    header = (
        np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
    )
    shape, is_fortran, dtype = header(file)
    if (is_fortran and len(shape) > 1) or dtype.hasobject:
        raise FileFormatError(f"{what} must be numbers in C order; save a copy with np.savez()")
    row = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))

    def read(start: int, n: int) -> np.ndarray:
        raw = file.read(n * row) if n else b""
        if len(raw) != n * row or (start + n == shape[0] and file.read(1)):
            raise FileFormatError(f"{what} is damaged: its size is not that of shape {shape}")
        return np.frombuffer(raw, dtype).reshape(n, *shape[1:])

    return shape, dtype, read
