"""An index as blocks of ids and codes, and an index built from such blocks.

A block has at most BLOCK items, so memory does not grow with the collection, apart from the index
that is being built.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from rankbits import _check
from rankbits.codes import BinaryCodes
from rankbits.codes.note import Note
from rankbits.codes.stored import Block, StoredCodes
from rankbits.errors import FileFormatError, InputError
from rankbits.index.hamming import HammingIndex
from rankbits.index.searchable import Searchable

BLOCK = 1 << 16  # items
EXTRA = "interop"
Path = str | os.PathLike[str]


class CodeSource(Protocol):
    """An index that is exported: its ids, its codes and what is known about them."""

    @property
    def n_bits(self) -> int:
        """Bits in a code."""
        ...

    @property
    def model(self) -> str | None:
        """Fingerprint of the model that made the codes, if it is known."""
        ...

    @property
    def side(self) -> str | None:
        """What the codes are for, if their model encodes queries and items differently."""
        ...

    @property
    def ids(self) -> np.ndarray:
        """All ids, ascending."""
        ...

    def codes(self, ids: Any = None) -> BinaryCodes:
        """The codes of some ids."""
        ...


def require_source(index: Any) -> None:
    """Refuse what is not an index, such as the name of its folder."""
    if isinstance(index, Searchable):
        return
    advice = "build one with HammingIndex(n_bits) and index.add(codes)"
    if isinstance(index, str | os.PathLike):
        advice = f"open the folder with HammingIndex.load({os.fspath(index)!r})"
    raise InputError(
        f"index must be a HammingIndex or a Collection, got {_check.describe(index)}; {advice}"
    )


def note_of(index: CodeSource) -> Note:
    """What is known about the codes of an index, for a file that has room for it."""
    return Note(index.n_bits, index.model, index.side)


def blocks(index: CodeSource, size: int | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ids and packed codes in ascending order of id."""
    ids, size = index.ids, size or BLOCK
    for start in range(0, len(ids), size):
        block_ids = ids[start : start + size]
        yield block_ids, index.codes(block_ids).packed


def index_of(content: StoredCodes, n_bits: int | None, kind: str) -> HammingIndex:
    """An index of the codes in an open file."""
    bits = content.note.resolve_bits(n_bits, content.width, content.source)
    return gather(
        content.source,
        content.blocks,
        Note(bits, content.note.model, content.note.side),
        kind,
        is_file=True,
    )


def gather(
    source: str, content: Iterable[Block], note: Note, kind: str, *, is_file: bool = False
) -> HammingIndex:
    """An index of blocks that came from elsewhere; what it refuses is blamed on the source.

    Blocks without ids are numbered from 0.
    """
    assert note.n_bits is not None  # noqa: S101
    index = HammingIndex(note.n_bits, kind)
    for ids, packed in content:
        try:
            index.add(BinaryCodes(packed, note.n_bits, note.model, note.side), ids)
        except InputError as error:
            blame = FileFormatError if is_file else InputError
            reason = str(error).partition("; call upsert()")[0]
            raise blame(
                f"{source} cannot be read as codes of {note.n_bits} bits: {reason}"
            ) from None
    return index
