"""Segment files: a segment on disk, checked block by block and mapped to be searched.

    header | planes | ids, unless they are a range | CRC-32 of each block

A region begins at a multiple of 4096 bytes, is padded with zeros to the next one, and falls into
blocks of its own. The header holds the CRC-32 of the table of blocks, and ends in its own, so the
four bytes at its end vouch for the whole file. A file is written once, under a temporary name, and
never changed. Numbers are little-endian; `docs/formats.md` has the table of fields.
"""

import errno
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, ClassVar

import numpy as np

from rankbits._files import status_of, write_atomically
from rankbits._mapped import Change, MappedFile
from rankbits.codes import MAX_BITS
from rankbits.errors import FileFormatError
from rankbits.index.inputs import MAX_ID
from rankbits.index.store.segment import GROUP, MAX_ROWS, Ids, Segment, aligned, packed_of

VERSION = 1
BLOCK = 1 << 20
_MAGIC = b"\x93RBSEG\r\n"
_PAGE = 4096
_STEP = 1 << 20  # rows looked at together
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

    def blocks_over(self, start: int, stop: int) -> range:
        """The numbers of the blocks in which bytes of one region lie."""
        region_at, before = _PAGE, 0
        if start >= self.ids_at:
            region_at, before = self.ids_at, -(-(self.ids_at - _PAGE) // self.block)
        low, high = (start - region_at) // self.block, -(-(stop - region_at) // self.block)
        return range(before + low, before + high)

    def place_of(self, number: int) -> tuple[int, int]:
        """Start and end of a block."""
        n_planes = -(-(self.ids_at - _PAGE) // self.block)
        if number < n_planes:
            start, end = _PAGE + number * self.block, self.ids_at
        else:
            start, end = self.ids_at + (number - n_planes) * self.block, self.table_at
        return start, min(start + self.block, end)

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


@dataclass(frozen=True, eq=False)
class FileSegment(Segment):
    """A segment whose bytes are those of a mapped file.

    The mapping holds on to the file, also when its name is deleted or given to another file. Others
    may cut the file or write to it all the same. So whoever reads planes or ids where they lie does
    it in a block of `_mapped.unchanged`; what is copied is compared with its checksums.
    """

    header: Header
    path: Path
    file: MappedFile
    identity: tuple[int, int]  # device and inode

    is_mapped: ClassVar[bool] = True

    @property
    def is_damaged(self) -> bool:
        """Whether the file was cut or written to, so that only reading it anew can help."""
        return self.file.change() in (Change.CUT, Change.WRITTEN)

    def require_same_file(self) -> None:
        """Raise unless the file has the bytes that it had."""
        self.file.require_same_file(self.verify)

    def verify(self) -> None:
        """Compare every block with its checksum."""
        for number in range(self.header.n_blocks):
            self._verified_block(number)

    def rows_between(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Packed codes and ids of some rows, copied and then compared with their checksums."""
        header, low = self.header, start // GROUP
        places = (_PAGE + group * header.group_bytes for group in (low, -(-stop // GROUP)))
        planes = self._verified(*places).reshape(-1, *self.planes.shape[1:])
        packed = packed_of(planes)[start - low * GROUP : stop - low * GROUP]
        if isinstance(self.ids, range):
            return packed, self.ids_of(np.arange(start, stop))
        raw = self._verified(header.ids_at + 8 * start, header.ids_at + 8 * stop)
        return packed, raw.view("<i8").astype(np.int64, copy=False)

    def in_memory(self) -> Segment:
        """The same with bytes of its own, which were compared with their checksums."""
        header = self.header
        planes = aligned(self.planes.shape)
        planes.reshape(-1)[:] = self._verified(_PAGE, _PAGE + header.planes_size)
        ids = self.ids
        if isinstance(ids, np.ndarray):
            raw = self._verified(header.ids_at, header.ids_at + 8 * header.n)
            ids = raw.view("<i8").astype(np.int64, copy=False)
        return Segment(self.n_bits, planes, ids)

    def pieces(self) -> Iterator[bytes]:
        """The whole file from front to back, compared with its checksums."""
        yield self.header.packed()
        for number in range(self.header.n_blocks):
            yield self._verified_block(number).tobytes()
        yield self._checksums.tobytes()

    def is_at(self, path: Path) -> bool:
        """Whether a name still leads to this file."""
        status = status_of(path)
        return status is not None and (status.st_dev, status.st_ino) == self.identity

    def _verified(self, start: int, stop: int) -> np.ndarray:
        """Bytes of one region."""
        data = np.empty(stop - start, np.uint8)
        for number in self.header.blocks_over(start, stop):
            low, high = self.header.place_of(number)
            first, last = max(start, low), min(stop, high)
            data[first - start : last - start] = self._verified_block(number)[
                first - low : last - low
            ]
        return data

    def _verified_block(self, number: int) -> np.ndarray:
        start, stop = self.header.place_of(number)
        data = self.file.mapping[start:stop]  # a copy, which nobody else can change
        _require_block(self.path, self.header, number, data, self._checksums)
        return np.frombuffer(data, np.uint8)

    @cached_property
    def _checksums(self) -> np.ndarray:
        table = self.file.mapping[self.header.table_at : self.header.file_size]
        return _checksums_of(self.path, self.header, table)


def write_segment(path: Path, header: Header, chunks: Iterable[Segment]) -> Header:
    """Write a new file from chunks in order of id, all but the last of them whole groups.

    A file of that name is never replaced: that is a FileExistsError.
    """
    with write_atomically(path, may_replace=False) as file:
        planes = _Region(file, _PAGE, header.block)
        ids = _Region(file, header.ids_at, header.block)
        for chunk in chunks:
            planes.write(chunk.planes)
            if not header.is_range:
                ids.write(chunk.id_array().astype("<i8", copy=False))
        table = np.array(planes.finish() + ids.finish(), "<u4").tobytes()
        file.seek(header.table_at)
        file.write(table)
        finished = replace(header, table_crc=zlib.crc32(table))
        file.seek(0)
        file.write(finished.packed())
    return finished


def copy_segment(segment: FileSegment, path: Path, *, may_link: bool) -> None:
    """The same file under another name: a link where that is allowed and can be, else a copy."""
    if may_link and _is_linked(segment, path):
        return
    with write_atomically(path, may_replace=False) as file:
        for piece in segment.pieces():
            file.write(piece)


def _is_linked(segment: FileSegment, path: Path) -> bool:
    """Link a file to another name, if that can be."""
    try:
        os.link(segment.path, path, follow_symlinks=False)
    except OSError:  # another file system, one without links, or just deleted
        return False
    with suppress(OSError):
        if segment.is_at(path):
            return True
    path.unlink()  # the name has meanwhile gone to another file
    return False


def read_segment(path: Path, *, verify: bool) -> FileSegment:
    """The segment of a file, mapped; with `verify` every byte is read and checked first."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise FileFormatError(f"{path} is missing; restore it from a snapshot") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise FileFormatError(f"{path} must be a file, it is a link") from None
        raise
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise FileFormatError(f"{path} must be a plain file")
        header = _read_header(path, file, status.st_size)
        mapped = _map(path, handle, header)
        if verify:  # by reading, which tells what the storage says where it fails
            _verify_blocks(path, file, header)
    segment = _mapped(path, header, mapped, (status.st_dev, status.st_ino))
    _require_zero_tail(segment)
    if verify:
        require_structure(segment)
    return segment


def _map(path: Path, handle: int, header: Header) -> MappedFile:
    try:
        mapping = mmap.mmap(handle, header.file_size, access=mmap.ACCESS_READ)
    except ValueError:
        raise FileFormatError(f"{path} is truncated: it was cut while it was opened") from None
    return MappedFile.of(mapping, str(path), handle, "restore it from a snapshot")


def _mapped(path: Path, header: Header, file: MappedFile, identity: tuple[int, int]) -> FileSegment:
    shape = (-(-header.n // GROUP), header.group_bytes // GROUP, GROUP)
    planes = np.frombuffer(file.mapping, np.uint8, header.planes_size, _PAGE).reshape(shape)
    ids: Ids = range(header.first, header.last + 1)
    if not header.is_range:
        raw = np.frombuffer(file.mapping, "<i8", header.n, header.ids_at)
        ids = raw.astype(np.int64, copy=False)
    return FileSegment(header.n_bits, planes, ids, header, path, file, identity)


def _read_header(path: Path, file: IO[bytes], size: int) -> Header:
    """The header of a file that has the size it tells."""
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
    if not (1 <= n_bits <= MAX_BITS and 1 <= n <= MAX_ROWS and _PAGE <= block <= 1 << 30):
        raise FileFormatError(
            f"{path} is damaged: its header tells of {n} codes of {n_bits} bits in blocks of "
            f"{block} bytes"
        )
    is_possible = first >= 0 and last <= MAX_ID and last - first >= n - 1
    if not is_possible or (last - first == n - 1) != bool(is_range):
        raise FileFormatError(
            f"{path} is damaged: its header tells of {n} codes with ids from {first} to {last}"
        )
    header = Header(n_bits, n, first, last, bool(is_range), block, crc)
    if header.packed() != raw:
        raise FileFormatError(f"{path} is damaged: the fields of its header contradict each other")
    if size != header.file_size:
        state = "truncated" if size < header.file_size else "damaged"
        raise FileFormatError(
            f"{path} is {state}: it must have {header.file_size} bytes, it has {size}"
        )
    return header


def _verify_blocks(path: Path, file: IO[bytes], header: Header) -> None:
    """Compare every block with its checksum."""
    file.seek(header.table_at)
    checksums = _checksums_of(path, header, file.read(4 * header.n_blocks))
    file.seek(_PAGE)
    for number in range(header.n_blocks):
        start, stop = header.place_of(number)
        _require_block(path, header, number, file.read(stop - start), checksums)


def _checksums_of(path: Path, header: Header, table: bytes) -> np.ndarray:
    if zlib.crc32(table) != header.table_crc:
        raise FileFormatError(
            f"{path} is damaged: its table of checksums does not match; restore it from a snapshot"
        )
    return np.frombuffer(table, "<u4")


def _require_block(
    path: Path, header: Header, number: int, data: bytes, checksums: np.ndarray
) -> None:
    if zlib.crc32(data) != checksums[number]:
        raise FileFormatError(
            f"{path} is damaged: block {number}, {header.rows_in(*header.place_of(number))}, does "
            "not match its checksum; restore the file from a snapshot"
        )


def _require_zero_tail(segment: FileSegment) -> None:
    """Kernels see the places behind the last item too: they hold zeros."""
    n_used = len(segment) % GROUP
    if n_used and segment.planes[-1, :, n_used:].any():
        raise FileFormatError(f"{segment.path} is damaged: there are codes behind its last item")


def require_structure(segment: FileSegment) -> None:
    """Ids ascend between those of the header, and codes have no bits beyond their length."""
    header, path = segment.header, segment.path
    ids = segment.ids
    if isinstance(ids, np.ndarray):
        if int(ids[0]) != header.first or int(ids[-1]) != header.last:
            raise FileFormatError(
                f"{path} is damaged: its ids are not those from {header.first} to {header.last}"
            )
        for start in range(0, len(ids), _STEP):
            if (np.diff(ids[start : start + _STEP + 1]) <= 0).any():
                raise FileFormatError(f"{path} is damaged: ids from row {start} on do not ascend")
    spare = -header.n_bits % 8
    for start in range(0, len(segment.planes) if spare else 0, _STEP // GROUP):
        last_bytes = segment.planes[start : start + _STEP // GROUP, -1]
        if (last_bytes & ((1 << spare) - 1)).any():
            raise FileFormatError(
                f"{path} is damaged: codes from row {start * GROUP} on have bits beyond the "
                f"{header.n_bits} of their length"
            )
