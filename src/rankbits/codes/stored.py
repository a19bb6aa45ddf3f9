"""Codes in an open file: what the file says about them, and their rows block by block."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rankbits.codes.note import Note
from rankbits.errors import FileFormatError

BLOCK = 1 << 16  # rows
IDS, CODES = "ids", "codes"  # arrays of .npz and .safetensors
N_BITS, MODEL, SIDE = "n_bits", "model", "side"  # arrays of .npz
N_BITS_KEY, MODEL_KEY = "rankbits.n_bits", "rankbits.model"  # metadata of a schema or header
SIDE_KEY = "rankbits.side"
Block = tuple[
    np.ndarray | None, np.ndarray
]  # ids (n,) if the file has them, packed codes (n, width)


@dataclass(frozen=True)
class StoredCodes:
    """Packed codes in a file that is open.

    Attributes
    ----------
    source : the file's name, for messages
    note : what the file says about its codes
    width : bytes in a code
    blocks : ids, if the file has them, and packed codes; to be read once
    """

    source: str
    note: Note
    width: int
    blocks: Iterator[Block]

    def read(self) -> np.ndarray:
        """All packed codes, uint8 of shape (n, width)."""
        packed = [np.empty((0, self.width), np.uint8), *(block for _, block in self.blocks)]
        return np.concatenate(packed)


def checked_blocks(n: int, width: int, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """The blocks that are to be written; they must have as many rows as the header says."""
    n_rows = 0
    for block in blocks:
        assert block.dtype == np.uint8 and block.shape[1:] == (width,)  # noqa: S101, PT018
        n_rows += len(block)
        yield np.ascontiguousarray(block)
    assert n_rows == n, f"{n_rows} rows came where {n} were announced"  # noqa: S101


def require_packed(source: str, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> None:
    """Refuse an array that cannot be packed codes."""
    if dtype != np.uint8 or len(shape) != 2 or shape[0] < 0:
        raise FileFormatError(
            f"{source} must hold packed codes, uint8 of shape (n, bytes), got {dtype} of shape "
            f"{shape}"
        )
