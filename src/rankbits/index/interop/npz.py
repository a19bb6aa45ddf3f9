"""NumPy: codes, ids and the number of bits in one .npz file, written and read in blocks.

The file holds `codes` (uint8, packed), `ids` (int64) and `n_bits`, so np.load() reads it too. ZIP
keeps a checksum of each array, so a flipped bit is found.
"""

import zipfile
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from rankbits._files import READ_ERRORS, one_line, write_atomically
from rankbits._unpacking import require_unpackable_npz
from rankbits.errors import FileFormatError, InputError
from rankbits.index.hamming import HammingIndex
from rankbits.index.interop.blocks import (
    BLOCK,
    Block,
    Path,
    Source,
    bits_of,
    blocks,
    gathered,
    require_file,
)


def to_npz(index: Source, path: Path) -> None:
    """Write ids and packed codes as a .npz file; a file of that name is replaced at the end."""
    ids = index.ids
    width = -(-index.n_bits // 8)
    with write_atomically(path) as file, zipfile.ZipFile(file, "w") as archive:
        with _entry(archive, "n_bits", (), "<i8") as out:
            out.write(np.int64(index.n_bits).astype("<i8").tobytes())
        with _entry(archive, "ids", (len(ids),), "<i8") as out:
            for start in range(0, len(ids), BLOCK):
                out.write(ids[start : start + BLOCK].astype("<i8").tobytes())
        with _entry(archive, "codes", (len(ids), width), "|u1") as out:
            for _, packed in blocks(index):
                out.write(packed.tobytes())


def from_npz(path: Path, kind: str = "auto", *, n_bits: int | None = None) -> HammingIndex:
    """A HammingIndex of a .npz file.

    Parameters
    ----------
    path : a file with the array `codes`, uint8 of shape (n, bytes), and if it has them `ids`
        (integers; else items are numbered from 0) and `n_bits` (one integer)
    kind : kind of the new index
    n_bits : int or None
        Bits in a code if the file does not tell; None takes 8 a byte.
    """
    name = require_file(path, "a .npz file")
    try:
        with zipfile.ZipFile(name) as archive:
            return _index_of(archive, name, kind, n_bits)
    except InputError:
        raise
    except READ_ERRORS as error:
        raise FileFormatError(f"{name} is not a readable .npz file: {one_line(error)}") from None


def _index_of(archive: zipfile.ZipFile, name: str, kind: str, n_bits: int | None) -> HammingIndex:
    inside = archive.namelist()
    for entry in inside:
        archive.open(entry).close()  # fails if directory and array differ in the name
    require_unpackable_npz(name, archive, ("codes", "ids", "n_bits"))
    if "codes.npy" not in inside:
        raise FileFormatError(f"{name} must hold the array 'codes', it holds {inside}")
    noted = _note(archive, name) if "n_bits.npy" in inside else None
    with archive.open("codes.npy") as out:
        shape, dtype, read_codes = _opened(out, f"{name}, codes")
        if dtype != np.uint8 or len(shape) != 2 or shape[0] < 0:
            raise FileFormatError(
                f"{name} must hold packed codes, uint8 of shape (n, bytes), got {dtype} of {shape}"
            )
        stored_bits = bits_of(n_bits, shape[1], noted, name)
        if "ids.npy" not in inside:
            pairs = _pairs(shape[0], lambda start, n: np.arange(start, start + n), read_codes)
            return gathered(name, pairs, stored_bits, kind, is_file=True)
        with archive.open("ids.npy") as ids:
            id_shape, id_dtype, read_ids = _opened(ids, f"{name}, ids")
            if id_shape != shape[:1] or id_dtype.kind not in "iu":
                raise FileFormatError(
                    f"{name} must hold an integer id for each of {shape[0]} codes, got {id_dtype} "
                    f"of shape {id_shape}"
                )
            return gathered(
                name, _pairs(shape[0], read_ids, read_codes), stored_bits, kind, is_file=True
            )


_Reader = Callable[[int, int], np.ndarray]


def _pairs(n: int, read_ids: _Reader, read_codes: _Reader) -> Iterator[Block]:
    """Blocks of both arrays; the last reads run to the end, where ZIP compares checksums."""
    for start in range(0, n + 1, BLOCK):
        size = min(BLOCK, n - start)
        ids, packed = read_ids(start, size), read_codes(start, size)
        if size:
            yield ids, packed


def _note(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open("n_bits.npy") as out:
        value = np.lib.format.read_array(out, allow_pickle=False)
    if value.shape != () or value.dtype.kind not in "iu":
        raise FileFormatError(f"{name} must hold n_bits as one integer, got {value.dtype}")
    return b"%d" % int(value)


def _entry(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], descr: str) -> IO[bytes]:
    """An array of the archive, open behind its header; ZIP64, since its size may pass 4 GB."""
    info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
    out = archive.open(info, "w", force_zip64=True)
    np.lib.format.write_array_header_1_0(
        out, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return out


def _opened(out: IO[bytes], what: str) -> tuple[tuple[int, ...], np.dtype[Any], _Reader]:
    """Shape and dtype of an array in the archive, and a reader of its next rows."""
    is_first = np.lib.format.read_magic(out) == (1, 0)
    header = (
        np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
    )
    shape, is_fortran, dtype = header(out)
    if (is_fortran and len(shape) > 1) or dtype.hasobject:
        raise FileFormatError(f"{what} must be numbers in C order; save a copy with np.savez()")
    row = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))

    def read(start: int, n: int) -> np.ndarray:
        raw = out.read(n * row) if n else b""
        if len(raw) != n * row or (start + n == shape[0] and out.read(1)):
            raise FileFormatError(f"{what} is damaged: its size is not that of shape {shape}")
        return np.frombuffer(raw, dtype).reshape(n, *shape[1:])

    return shape, dtype, read
