"""The two formats of PostgreSQL's COPY for rows of (id bigint, code bit(n)).

Text: a line an item, the id, a tab, the bits as digits. Binary: a header, for each item its fields
with their lengths, big endian, and an end mark; a bit string is its number of bits and then its
bytes, most significant bit first, which is how rankbits packs codes.
"""

import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.codes.note import Note
from rankbits.codes.stored import Block
from rankbits.errors import FileFormatError, InputError
from rankbits.index.interop.blocks import BLOCK, CodeSource, blocks

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEADER = SIGNATURE + struct.pack(">ii", 0, 0)  # no flags, no extension
_END = struct.pack(">h", -1)
_CHUNK = 1 << 20  # bytes


def bit_texts(codes: BinaryCodes) -> list[bytes]:
    """Codes as PostgreSQL writes bit strings: a digit 0 or 1 for each bit."""
    digits = np.ascontiguousarray(codes.bits() + ord("0"))
    return list(digits.view(f"S{codes.n_bits}").ravel().tolist())


def text_chunks(index: CodeSource) -> Iterator[bytes]:
    """An index as COPY text."""
    for ids, packed in blocks(index):
        texts = bit_texts(BinaryCodes(packed, index.n_bits))
        yield b"".join(b"%d\t%b\n" % row for row in zip(ids.tolist(), texts, strict=True))


def binary_chunks(index: CodeSource) -> Iterator[bytes]:
    """An index as COPY binary."""
    yield _HEADER
    layout = _layout(8, -(-index.n_bits // 8))
    for ids, packed in blocks(index):
        rows = np.zeros(len(ids), layout)
        rows["n_fields"], rows["id_bytes"], rows["code_bytes"] = 2, 8, 4 + packed.shape[1]
        rows["id"], rows["n_bits"], rows["code"] = ids, index.n_bits, packed
        yield rows.tobytes()
    yield _END


def _layout(id_bytes: int, width: int) -> np.dtype[np.void]:
    """A row of COPY binary, if all its fields have one length."""
    return np.dtype(
        [
            ("n_fields", ">i2"),
            ("id_bytes", ">i4"),
            ("id", f">i{id_bytes}"),
            ("code_bytes", ">i4"),
            ("n_bits", ">i4"),
            ("code", np.uint8, (width,)),
        ]
    )


def read_text(file: IO[bytes], n_bits: int | None, source: str) -> tuple[int, Iterator[Block]]:
    """Bits in a code and the blocks of COPY text."""
    first = file.readline()
    if first in (b"", b"\\.\n"):
        return _told(n_bits, source), iter(())
    n_stored = len(first.rstrip(b"\n").partition(b"\t")[2])
    n_bits = _resolved(n_bits, n_stored, source)
    return n_bits, _text_blocks(file, first, n_bits, source)


def _resolved(n_bits: int | None, n_stored: int, source: str) -> int:
    """Bits in a code, as the first row has them and as the caller says."""
    note = Note.parse(str(n_stored), None, None, source)
    return note.resolve_bits(n_bits, -(-n_stored // 8), source)


def _text_blocks(file: IO[bytes], first: bytes, n_bits: int, source: str) -> Iterator[Block]:
    lines, n_before = [first, *file.readlines(_CHUNK)], 0
    while lines:
        if lines[-1] == b"\\.\n":  # the end mark that psql writes between commands
            lines.pop()
        yield _parsed(lines, n_bits, source, n_before)
        n_before += len(lines)
        lines = file.readlines(_CHUNK)


def _parsed(lines: list[bytes], n_bits: int, source: str, n_before: int) -> Block:
    """Lines as ids and packed codes."""
    ids, digits = [], []
    for number, line in enumerate(lines, n_before + 1):
        name, _, bits = line.partition(b"\t")
        if not (name.isdigit() and len(name) < 20 and len(bits) == n_bits + 1 and bits[-1] == 10):
            raise FileFormatError(
                f"{source} is damaged: line {number} must be an id, a tab, {n_bits} bits and a "
                f"line end, got {line[:60]!r}"
            )
        ids.append(int(name))
        digits.append(bits)
    values = np.frombuffer(b"".join(digits), np.uint8).reshape(len(lines), n_bits + 1)[:, :-1]
    is_wrong = ((values != ord("0")) & (values != ord("1"))).any(axis=1)
    if is_wrong.any():
        row = n_before + 1 + int(is_wrong.argmax())
        raise FileFormatError(f"{source} is damaged: line {row} has digits other than 0 and 1")
    return np.array(ids, np.uint64), np.packbits(values & 1, axis=1)


def read_binary(
    chunks: Iterable[bytes], n_bits: int | None, source: str
) -> tuple[int, Iterator[Block]]:
    """Bits in a code and the blocks of COPY binary."""
    stream = iter(chunks)
    start = _filled(bytearray(), stream, len(_HEADER))
    if not start.startswith(SIGNATURE) or len(start) < len(_HEADER):
        raise FileFormatError(f"{source} does not begin as PostgreSQL's binary COPY does")
    flags, n_skipped = struct.unpack_from(">ii", start, len(SIGNATURE))
    if flags or not 0 <= n_skipped <= _CHUNK:
        raise FileFormatError(f"{source} has flags or a header that no known COPY writes")
    n_skipped += len(_HEADER)
    rest = _filled(start, stream, n_skipped + 22)[n_skipped:]  # 22: a row before its code
    if rest == _END:
        return _told(n_bits, source), iter(())
    id_bytes, n_stored = _first_row(bytes(rest), source)
    n_bits = _resolved(n_bits, n_stored, source)
    layout = _layout(id_bytes, -(-n_bits // 8))
    return n_bits, _binary_blocks(chain([bytes(rest)], stream), layout, n_bits, source)


def _first_row(row: bytes, source: str) -> tuple[int, int]:
    """The length of an id in bytes and of a code in bits."""
    id_bytes = int.from_bytes(row[2:6], signed=True)
    if id_bytes in (4, 8):
        code_bytes, n_bits = struct.unpack_from(">ii", row.ljust(22, b"\0"), 6 + id_bytes)
        if n_bits > 0 and code_bytes == 4 + -(-n_bits // 8):
            return id_bytes, n_bits
    raise FileFormatError(
        f"{source} must hold rows of an id, 4 or 8 bytes, and bits; the first row does not"
    )


def _binary_blocks(
    chunks: Iterator[bytes], layout: np.dtype[np.void], n_bits: int, source: str
) -> Iterator[Block]:
    """Rows by the block; behind the last one stands the end mark and nothing else."""
    rest = bytearray()
    while True:
        rest = _filled(rest, chunks, BLOCK * layout.itemsize)
        n = len(rest) // layout.itemsize
        if n == 0:
            break
        rows = np.frombuffer(bytes(rest[: n * layout.itemsize]), layout)
        rest = rest[n * layout.itemsize :]
        expected = (2, layout["id"].itemsize, 4 + layout["code"].itemsize, n_bits)
        for field, value in zip(
            ("n_fields", "id_bytes", "code_bytes", "n_bits"), expected, strict=True
        ):
            if (rows[field] != value).any():
                raise FileFormatError(
                    f"{source} is damaged or has nulls: each row must be an id and {n_bits} bits"
                )
        yield rows["id"].astype(np.int64), rows["code"]
    if rest != _END:
        raise FileFormatError(
            f"{source} is damaged or has nulls: COPY's end mark is not at its end"
        )


def _filled(buffer: bytearray, stream: Iterator[bytes], n: int) -> bytearray:
    """The buffer with chunks behind it until it has n bytes or the stream ends."""
    while len(buffer) < n and (chunk := next(stream, None)) is not None:
        buffer += chunk
    return buffer


def _told(n_bits: int | None, source: str) -> int:
    if n_bits is None:
        raise InputError(f"n_bits must be given, since {source} has no codes that tell it")
    return n_bits
