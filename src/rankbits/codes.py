"""Binary codes: bits packed into bytes, most significant bit first, unused trailing bits zero.

This is the layout of `numpy.packbits`, pgvector and sentence-transformers, so codes travel as they
are.

Notation:
    n  items        b  bits in a code, 1..4096
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rankbits import _check, _native
from rankbits._files import READ_ERRORS, one_line, write_atomically
from rankbits._mapped import MappedFile
from rankbits.errors import FileFormatError, InputError

__all__ = ["BinaryCodes"]

MAX_BITS = 4096
_TRAILER = b"rankbits:n_bits="  # follows the array in a saved file; readers of .npy ignore it
_VERSION = (
    2,
    0,
)  # of .npy, which NumPy itself gives to huge headers only: here a trailer must follow
_CHECK_ROWS = 1 << 16


class BinaryCodes:
    """Packed binary codes of n items, which do not change once they are made.

    Parameters
    ----------
    packed : ndarray of uint8, shape (n, ceil(n_bits / 8))
        Used without a copy if contiguous; may be memory-mapped. `codes.packed` is a read-only view.
    n_bits : int, 1 to 4096

    >>> codes = BinaryCodes.from_bits([[1, 0, 1], [0, 0, 1]])
    >>> codes, codes.packed.tolist()
    (BinaryCodes(n=2, n_bits=3), [[160], [32]])
    """

    __slots__ = ("_file", "_n_bits", "_packed")

    _packed: np.ndarray
    _n_bits: int
    _file: MappedFile | None

    def __init__(self, packed: Any, n_bits: int) -> None:
        n_bits = _check.whole("n_bits", n_bits, 1, MAX_BITS)
        array = np.asarray(packed)
        width = -(-n_bits // 8)
        if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != width:
            raise InputError(
                f"codes must be uint8 of shape (n, {width}) for {n_bits} bits, got "
                f"{_check.describe(array)}; pack bits with BinaryCodes.from_bits() "
                "and real values with BinaryCodes.from_logits()"
            )
        file = MappedFile.behind(array)
        if file is not None:
            file.require_whole()
        contiguous = np.ascontiguousarray(array)
        view = contiguous.view()
        view.flags.writeable = False
        is_copy = file is not None and not np.may_share_memory(contiguous, array)
        object.__setattr__(self, "_packed", view)
        object.__setattr__(self, "_n_bits", n_bits)
        object.__setattr__(self, "_file", None if is_copy else file)
        self._refuse_trailing_bits()

    @property
    def packed(self) -> np.ndarray:
        """The bytes, uint8 of shape (n, ceil(n_bits / 8)), read-only."""
        if self._file is not None:
            self._file.require_whole()
        return self._packed

    @property
    def n_bits(self) -> int:
        """Bits in a code."""
        return self._n_bits

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"cannot set {name}: BinaryCodes do not change; make new ones with "
            "BinaryCodes(packed, n_bits)"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete {name}: BinaryCodes do not change")

    def __reduce__(self) -> tuple[type["BinaryCodes"], tuple[np.ndarray, int]]:
        return type(self), (self.packed, self.n_bits)

    def _refuse_trailing_bits(self) -> None:
        """Distances would count set bits beyond n_bits, so there must be none."""
        spare = -self.n_bits % 8
        if spare == 0:
            return
        last = self.packed[:, -1]
        for start in range(0, len(last), _CHECK_ROWS):
            stray = np.flatnonzero(last[start : start + _CHECK_ROWS] & ((1 << spare) - 1))
            if stray.size:
                raise InputError(
                    f"codes of {self.n_bits} bits must end in {spare} zero bits, row "
                    f"{start + int(stray[0])} does not; pass the right n_bits or clear them"
                )

    @classmethod
    def from_bits(cls, array: Any) -> "BinaryCodes":
        """Pack an (n, b) array of {0, 1}, {-1, +1} or bool."""
        bits = _check.array_2d("bits", array)
        if bits.dtype.kind not in "biuf":
            raise InputError(f"bits must be 0/1, -1/+1 or bool, got {_check.describe(bits)}")
        _check.whole("bits per item", bits.shape[1], 1, MAX_BITS)
        low, high = bits.min(), bits.max()
        lowest = -1 if low < 0 else 0
        is_allowed = (bits == lowest) | (bits == 1)
        if not is_allowed.all():
            value = bits[~is_allowed][0]
            raise InputError(
                f"bits must be all 0/1 or all -1/+1, got the value {value} among {low}..{high}; "
                "call BinaryCodes.from_logits() for real values"
            )
        return cls(np.packbits(bits > 0, axis=1), bits.shape[1])

    @classmethod
    def from_logits(cls, array: Any) -> "BinaryCodes":
        """Pack an (n, b) array of real values: a bit is 1 where the value is > 0."""
        logits = _check.array_2d("logits", array)
        if logits.dtype.kind not in "iuf":
            raise InputError(f"logits must be real numbers, got {_check.describe(logits)}")
        if logits.dtype.kind == "f" and np.isnan(logits).any():
            row = int(np.argwhere(np.isnan(logits))[0][0])
            raise InputError(f"logits must not be NaN, row {row} has one; no sign can be taken")
        _check.whole("bits per item", logits.shape[1], 1, MAX_BITS)
        return cls(np.packbits(logits > 0, axis=1), logits.shape[1])

    def bits(self) -> np.ndarray:
        """The codes as an (n, b) uint8 array of 0 and 1."""
        return np.unpackbits(self.packed, axis=1, count=self.n_bits)

    def __len__(self) -> int:
        return len(self._packed)

    def __repr__(self) -> str:
        return f"BinaryCodes(n={len(self)}, n_bits={self.n_bits})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BinaryCodes):
            return NotImplemented
        return self.n_bits == other.n_bits and np.array_equal(self.packed, other.packed)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, rows: Any) -> "BinaryCodes":
        """Codes of some rows: a slice (no copy), an index array, a mask, or one row number."""
        if isinstance(rows, tuple):
            raise InputError("codes are sliced by rows only: codes[rows]")
        packed = self.packed[rows]
        return BinaryCodes(packed if packed.ndim == 2 else packed[None], self.n_bits)

    def __iter__(self) -> Iterator["BinaryCodes"]:
        return (self[row] for row in range(len(self)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npy file of the packed bytes, with n_bits behind the array."""
        with write_atomically(path) as file:
            np.lib.format.write_array(file, self.packed, version=_VERSION, allow_pickle=False)
            file.write(_TRAILER + b"%d\n" % self.n_bits)

    @classmethod
    def load(cls, path: str | os.PathLike[str], n_bits: int | None = None) -> "BinaryCodes":
        """Map a saved file into memory; nothing is read before it is used.

        A plain .npy of packed bytes loads too; `n_bits` is then 8 a byte unless given.
        """
        packed, stored = _map_npy(path)
        if None not in (n_bits, stored) and n_bits != stored:
            raise InputError(f"n_bits is {n_bits}, but {path} was saved with {stored} bits")
        if packed.dtype != np.uint8 or packed.ndim != 2:
            raise FileFormatError(
                f"{path} must hold packed codes, uint8 of shape (n, bytes), "
                f"got {_check.describe(np.asarray(packed))}"
            )
        if stored is not None and packed.shape[1] != -(-stored // 8):
            raise FileFormatError(
                f"{path} is damaged: {stored} bits do not fit codes of {packed.shape[1]} bytes"
            )
        given = stored if n_bits is None else n_bits
        return cls(packed, 8 * packed.shape[1] if given is None else given)


def _map_npy(path: str | os.PathLike[str]) -> tuple[np.ndarray, int | None]:
    """The array of a .npy file, mapped, and the number of bits its trailer names."""
    if not os.path.isfile(path):
        raise InputError(f"path must name a file of codes, there is no {path}")
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except READ_ERRORS as error:
        raise FileFormatError(f"{path} is not a readable .npy file: {one_line(error)}") from None
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        file.seek(array.offset + array.nbytes)
        trailer = file.read(64)
    if not trailer and version != _VERSION:
        return array, None
    digits = trailer[len(_TRAILER) : -1]
    if not (trailer.startswith(_TRAILER) and trailer.endswith(b"\n") and digits.isdigit()):
        raise FileFormatError(f"{path} is damaged: what follows its array is not rankbits' trailer")
    return array, int(digits)


def require_same_bits(queries: BinaryCodes, database: BinaryCodes) -> None:
    """The check of every function that compares two sets of codes."""
    for name, codes in (("queries", queries), ("database", database)):
        if not isinstance(codes, BinaryCodes):
            raise InputError(f"{name} must be BinaryCodes, got {_check.describe(codes)}")
        if len(codes) == 0:
            raise InputError(f"{name} must not be empty")
    if queries.n_bits != database.n_bits:
        raise InputError(
            f"queries have {queries.n_bits} bits and database has {database.n_bits}; "
            "encode both with the same model"
        )


def hamming_distances(queries: BinaryCodes, database: BinaryCodes) -> np.ndarray:
    """Every distance, as a uint16 array (queries, items): for small blocks and for audits."""
    require_same_bits(queries, database)
    out = np.empty((len(queries), len(database)), np.uint16)
    _native.distances(queries.packed, database.packed, out, n_threads=_native.threads(None))
    require_unchanged(int(out.max()) <= queries.n_bits, f"a distance is {out.max()}", queries)
    return out


def smallest_distances(
    queries: Sequence[BinaryCodes], database: Sequence[BinaryCodes]
) -> np.ndarray:
    """Distance of every pair in the table that has it nearest, uint16 of shape (queries, items).

    Both hold the codes of each table, in the same order.
    """
    nearest = hamming_distances(queries[0], database[0])
    for query_codes, item_codes in zip(queries[1:], database[1:], strict=True):
        np.minimum(nearest, hamming_distances(query_codes, item_codes), out=nearest)
    return nearest


def require_unchanged(is_sound: bool, evidence: str, queries: BinaryCodes) -> None:
    """Refuse distances that codes of this length cannot have: their bytes were written to."""
    if not is_sound:
        raise InputError(
            f"codes changed while they were being compared: {evidence}, which codes of "
            f"{queries.n_bits} bits cannot give; do not write to the array or the file behind "
            "BinaryCodes, or pass a copy"
        )
