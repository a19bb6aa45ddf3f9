"""Segment files: a sealed segment on disk, checked block by block and mapped to be searched.

    header | planes | ids, unless they are a range | CRC-32 of each block

A region begins at a multiple of 4096 bytes, is padded with zeros to the next one, and falls into
blocks of its own. The header holds the CRC-32 of the table of blocks, and ends in its own, so the
four bytes at its end vouch for the whole file. A file is written once, under a temporary name, and
never changed. Numbers are little-endian; `docs/formats.md` has the table of fields.
"""

import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np

from rankbits._files import write_atomically
from rankbits.codes import MAX_BITS
from rankbits.errors import FileFormatError
from rankbits.index._segment import GROUP, MAX_ROWS, Ids, Segment

VERSION = 1
BLOCK = 1 << 20
_MAGIC = b"\x93RBSEG\r\n"
_PAGE = 4096
_FIELDS = struct.Struct("<8sIIQQqqQQQQQQI")


def _padded(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


@dataclass(frozen=True)
class Header:
    """What a segment file holds; where it lies follows from that."""

    n_bits: int
    n: int
    first: int  # id of the first row
    last: int  # id of the last row
    is_range: bool
    block: int = BLOCK
    table_crc: int = 0

    @property
    def group_bytes(self) -> int:
        """Bytes of 64 codes."""
        return -(-self.n_bits // 8) * GROUP

    @property
    def planes_size(self) -> int:
        """Bytes of the planes, without padding."""
        return -(-self.n // GROUP) * self.group_bytes

    @property
    def ids_at(self) -> int:
        """Where the ids begin."""
        return _PAGE + _padded(self.planes_size)

    @property
    def table_at(self) -> int:
        """Where the checksums begin."""
        return self.ids_at + (0 if self.is_range else _padded(8 * self.n))

    @property
    def n_blocks(self) -> int:
        """Blocks of both regions."""
        regions = (self.ids_at - _PAGE, self.table_at - self.ids_at)
        return sum(-(-size // self.block) for size in regions)

    @property
    def file_size(self) -> int:
        """Bytes of the whole file."""
        return self.table_at + 4 * self.n_blocks

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Start and end of each block."""
        for start, stop in ((_PAGE, self.ids_at), (self.ids_at, self.table_at)):
            for at in range(start, stop, self.block):
                yield at, min(at + self.block, stop)

    def rows_in(self, start: int, stop: int) -> str:
        """Which rows a block holds, in words."""
        if start >= self.ids_at:
            what, low, high = "ids", (start - self.ids_at) // 8, (stop - self.ids_at) // 8
        else:
            low, high = (start - _PAGE) // self.group_bytes, -(-(stop - _PAGE) // self.group_bytes)
            what, low, high = "codes", low * GROUP, high * GROUP
        return f"{what} of rows {low} to {min(high, self.n) - 1}"

    def packed(self) -> bytes:
        """The header as it stands in the file."""
        fields = _FIELDS.pack(
            _MAGIC,
            VERSION,
            self.n_bits,
            self.n,
            int(self.is_range),
            self.first,
            self.last,
            self.block,
            _PAGE,
            self.planes_size,
            self.ids_at,
            self.table_at,
            self.n_blocks,
            self.table_crc,
        ).ljust(_PAGE - 4, b"\0")
        return fields + struct.pack("<I", zlib.crc32(fields))

    @property
    def crc(self) -> int:
        """The last four bytes of the header."""
        return zlib.crc32(self.packed()[:-4])


class _Region:
    """Writes one region front to back and keeps the checksums of its blocks."""

    def __init__(self, file: IO[bytes], at: int, block: int) -> None:
        self._file, self._at, self._block = file, at, block
        self._crcs: list[int] = []
        self._crc = self._filled = self._size = 0

    def write(self, array: np.ndarray) -> None:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        self._file.seek(self._at + self._size)
        self._file.write(data)
        self._size += len(data)
        while len(data):
            piece = data[: self._block - self._filled]
            self._crc, self._filled = zlib.crc32(piece, self._crc), self._filled + len(piece)
            if self._filled == self._block:
                self._end_block()
            data = data[len(piece) :]

    def _end_block(self) -> None:
        self._crcs.append(self._crc)
        self._crc = self._filled = 0

    def finish(self) -> list[int]:
        """Pad the region; the checksums of its blocks."""
        self.write(np.zeros(_padded(self._size) - self._size, np.uint8))
        if self._filled:
            self._end_block()
        return self._crcs


def write_segment(path: Path, header: Header, chunks: Iterable[Segment]) -> Header:
    """Write a file from chunks in order of id, all but the last of them whole groups."""
    with write_atomically(path) as file:
        planes = _Region(file, _PAGE, header.block)
        ids = _Region(file, header.ids_at, header.block)
        for chunk in chunks:
            planes.write(chunk.planes)
            if not header.is_range:
                ids.write(chunk.id_array().astype("<i8", copy=False))
        table = np.array(planes.finish() + ids.finish(), "<u4").tobytes()
        file.seek(header.table_at)
        file.write(table)
        whole = replace(header, table_crc=zlib.crc32(table))
        file.seek(0)
        file.write(whole.packed())
    return whole


def open_segment(path: Path) -> IO[bytes]:
    """The file of a segment; whoever opened it keeps it, also when it is deleted meanwhile."""
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise FileFormatError(f"{path} is missing; restore it from a snapshot") from None


def read_header(file: IO[bytes]) -> Header:
    """The header of a file that has the size it tells."""
    path, size = file.name, os.fstat(file.fileno()).st_size
    file.seek(0)
    raw = file.read(_PAGE)
    if not raw.startswith(_MAGIC[: max(1, len(raw))]):
        raise FileFormatError(f"{path} is no segment of rankbits, its first bytes are {raw[:8]!r}")
    if len(raw) < _PAGE:
        raise FileFormatError(f"{path} is truncated: a header has {_PAGE} bytes, got {len(raw)}")
    if zlib.crc32(raw[:-4]) != struct.unpack("<I", raw[-4:])[0]:
        raise FileFormatError(f"{path} is damaged: its header does not match its checksum")
    _, version, n_bits, n, is_range, first, last, block, *_, crc = _FIELDS.unpack_from(raw)
    if version != VERSION:
        raise FileFormatError(
            f"{path} has version {version} of the format, this rankbits reads {VERSION}"
        )
    if not (1 <= n_bits <= MAX_BITS and 1 <= n <= MAX_ROWS and block >= _PAGE):
        raise FileFormatError(f"{path} is damaged: {n} codes of {n_bits} bits cannot be")
    if first < 0 or last - first < n - 1 or (last - first == n - 1) != bool(is_range):
        raise FileFormatError(
            f"{path} is damaged: {n} codes with ids from {first} to {last} cannot be"
        )
    header = Header(n_bits, n, first, last, bool(is_range), block, crc)
    if header.packed() != raw:
        raise FileFormatError(f"{path} is damaged: the fields of its header contradict each other")
    if size != header.file_size:
        state = "truncated" if size < header.file_size else "damaged"
        raise FileFormatError(f"{path} is {state}: want {header.file_size} bytes, got {size}")
    return header


def verify(file: IO[bytes], header: Header) -> None:
    """Compare every block with its checksum."""
    file.seek(header.table_at)
    table = file.read(4 * header.n_blocks)
    if zlib.crc32(table) != header.table_crc:
        raise FileFormatError(f"{file.name} is damaged: its table of checksums does not match")
    file.seek(_PAGE)
    wanted = np.frombuffer(table, "<u4").tolist()
    for number, (start, stop) in enumerate(header.blocks()):
        if zlib.crc32(file.read(stop - start)) != wanted[number]:
            raise FileFormatError(
                f"{file.name} is damaged: block {number}, {header.rows_in(start, stop)}, does not "
                "match its checksum; restore the file from a snapshot"
            )


def map_segment(file: IO[bytes], header: Header) -> Segment:
    """The segment, mapped: nothing is read before it is used."""
    raw = mmap.mmap(file.fileno(), header.table_at, access=mmap.ACCESS_READ)
    shape = (-(-header.n // GROUP), header.group_bytes // GROUP, GROUP)
    planes = np.frombuffer(raw, np.uint8, header.planes_size, _PAGE).reshape(shape)
    ids: Ids = range(header.first, header.last + 1)
    if not header.is_range:
        ids = np.frombuffer(raw, "<i8", header.n, header.ids_at).astype(np.int64, copy=False)
    return Segment(header.n_bits, planes, ids)
