"""What every partner needs: an index as blocks of ids and codes, and an index out of such blocks.

A block has at most BLOCK items, so that nothing here grows with the collection but the index that
is being built.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from rankbits import _check
from rankbits.codes import MAX_BITS, BinaryCodes
from rankbits.errors import FileFormatError, InputError
from rankbits.index.hamming import HammingIndex

BLOCK = 1 << 16  # items
EXTRA = "interop"
N_BITS = "rankbits.n_bits"  # where a file of a partner has room for a note
Path = str | os.PathLike[str]
Block = tuple[np.ndarray, np.ndarray]  # ids (n,), packed codes (n, width)


class Source(Protocol):
    """What is handed over: an index, or anything that gives its ids and codes."""

    n_bits: int

    @property
    def ids(self) -> np.ndarray:
        """All ids, ascending."""
        ...

    def codes(self, ids: Any = None) -> BinaryCodes:
        """The codes of some ids."""
        ...


def blocks(index: Source, size: int | None = None) -> Iterator[Block]:
    """Ids and packed codes in ascending order of id."""
    ids, size = index.ids, size or BLOCK
    for start in range(0, len(ids), size):
        block_ids = ids[start : start + size]
        yield block_ids, index.codes(block_ids).packed


def gathered(
    source: str, block_list: Iterable[Block], n_bits: int, kind: str, *, is_file: bool = False
) -> HammingIndex:
    """An index of blocks that came from elsewhere; what it refuses is blamed on the source."""
    index = HammingIndex(n_bits, kind)
    for ids, packed in block_list:
        try:
            index.add(packed, ids)
        except InputError as error:
            blame = FileFormatError if is_file else InputError
            hint = str(error).partition("; call upsert()")[0]
            raise blame(f"{source} cannot be read as codes of {n_bits} bits: {hint}") from None
    return index


def bits_of(n_bits: int | None, width: int, noted: bytes | None, source: str) -> int:
    """Bits in codes of so many bytes: as the caller says, as the source notes, or 8 a byte."""
    if noted is not None and not (noted.isdigit() and 0 < int(noted) <= MAX_BITS):
        raise FileFormatError(f"{source} is damaged: it notes {noted!r} bits in a code")
    stored = None if noted is None else int(noted)
    if n_bits is not None and stored not in (None, n_bits):
        raise InputError(f"n_bits is {n_bits}, but {source} holds codes of {stored} bits")
    bits = n_bits if n_bits is not None else stored if stored is not None else 8 * width
    bits = _check.whole("n_bits", bits, 1, MAX_BITS)
    if -(-bits // 8) != width:
        blame = InputError if stored is None else FileFormatError
        raise blame(f"n_bits is {bits}, but {source} holds codes of {width} bytes")
    return bits


def require_file(path: Path, what: str) -> str:
    """The name of a file that is there."""
    if not os.path.isfile(path):
        raise InputError(f"path must name {what}, there is no {os.fspath(path)}")
    return os.fspath(path)
