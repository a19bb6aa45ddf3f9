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

from rankbits import _check
from rankbits._mapped import MappedFile, unchanged
from rankbits.codes import files
from rankbits.codes.note import MAX_BITS, Note, checked_model, require_same_model
from rankbits.codes.sides import checked_side, require_same_side
from rankbits.errors import InputError

_CHECK_ROWS = 1 << 16
_INT8_OFFSET = 128  # which sentence-transformers takes from packed bytes to make them int8


class BinaryCodes:
    """Packed binary codes of n items, which never change.

    Parameters
    ----------
    packed : ndarray of uint8, shape (n, ceil(n_bits / 8))
        Used without a copy if contiguous; may be memory-mapped. `codes.packed` is a read-only view.
    n_bits : int, 1 to 4096
    model : str or None
        Fingerprint of the model that made the codes, as `encode` sets it; None if it is unknown.
        Codes of two different models are not compared. Equality looks at the bits alone.
    side : {"items", "queries"} or None
        What the codes are for, where a model encodes queries and items differently: such codes are
        compared with those of the other side only. None for codes that serve as both.

    >>> codes = BinaryCodes.from_bits([[1, 0, 1], [0, 0, 1]])
    >>> codes, codes.packed.tolist()
    (BinaryCodes(n=2, n_bits=3), [[160], [32]])
    """

    __slots__ = ("_file", "_model", "_n_bits", "_packed", "_side")

    _packed: np.ndarray
    _n_bits: int
    _model: str | None
    _side: str | None
    _file: MappedFile | None

    def __init__(
        self, packed: Any, n_bits: int, model: str | None = None, side: str | None = None
    ) -> None:
        n_bits = _check.whole("n_bits", n_bits, 1, MAX_BITS)
        array = np.asarray(packed)
        width = -(-n_bits // 8)
        if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != width:
            raise InputError(
                f"codes must be uint8 of shape (n, {width}) for {n_bits} bits, got "
                f"{_check.describe(array)}; {_advice(array, width)}"
            )
        file = MappedFile.behind(array)
        with unchanged(array):
            contiguous = np.ascontiguousarray(array)
        view = contiguous.view()
        view.flags.writeable = False
        is_copy = file is not None and not np.may_share_memory(contiguous, array)
        object.__setattr__(self, "_packed", view)
        object.__setattr__(self, "_n_bits", n_bits)
        object.__setattr__(self, "_model", checked_model(model))
        object.__setattr__(self, "_side", checked_side(side))
        object.__setattr__(self, "_file", None if is_copy else file)
        self._refuse_trailing_bits()

    @property
    def packed(self) -> np.ndarray:
        """The bytes, uint8 of shape (n, ceil(n_bits / 8)), read-only."""
        self.require_same_file()
        return self._packed

    def require_same_file(self) -> None:
        """Raise a FileFormatError if a file that the codes are mapped from is no longer the same.

        Whoever computes from `packed` does this afterwards: a computation between two calls that
        pass has read the bytes that the file had when it was opened.
        """
        if self._file is not None:
            self._file.require_same_file()

    @property
    def n_bits(self) -> int:
        """Bits in a code."""
        return self._n_bits

    @property
    def model(self) -> str | None:
        """Fingerprint of the model that made the codes, None if it is unknown."""
        return self._model

    @property
    def side(self) -> str | None:
        """What the codes are for, "items" or "queries"; None if they serve as both."""
        return self._side

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"cannot set {name}: BinaryCodes never change; make new ones with "
            "BinaryCodes(packed, n_bits)"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete {name}: BinaryCodes never change")

    def __reduce__(self) -> tuple[type["BinaryCodes"], tuple[Any, ...]]:
        return type(self), (self.packed, self.n_bits, self.model, self.side)

    def _refuse_trailing_bits(self) -> None:
        """Distances would count set bits beyond n_bits, so there must be none."""
        spare = -self.n_bits % 8
        if spare == 0:
            return
        with unchanged(self):
            last = self.packed[:, -1]
            for start in range(0, len(last), _CHECK_ROWS):
                stray = np.flatnonzero(last[start : start + _CHECK_ROWS] & ((1 << spare) - 1))
                if stray.size:
                    raise InputError(
                        f"codes of {self.n_bits} bits must end in {spare} zero bits, row "
                        f"{start + int(stray[0])} does not; pass the right n_bits or clear those "
                        "bits"
                    )

    @classmethod
    def from_bits(cls, array: Any) -> "BinaryCodes":
        """Pack an (n, b) array of {0, 1}, {-1, +1} or bool.

        Parameters
        ----------
        array : array-like of shape (n, b)
            The bits of each code, all as 0 and 1, all as -1 and +1, or as bool. Neither n nor b
            may be 0, and b is at most 4096.
        """
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
                f"bits must be all 0/1 or all -1/+1, got {value} among values from {low} to "
                f"{high}; call BinaryCodes.from_logits() for real values, BinaryCodes.from_int8() "
                "for int8 codes of sentence-transformers"
            )
        return cls(np.packbits(bits > 0, axis=1), bits.shape[1])

    @classmethod
    def from_logits(cls, array: Any) -> "BinaryCodes":
        """Pack an (n, b) array of real values: a bit is 1 where the value is > 0.

        Parameters
        ----------
        array : array-like of shape (n, b)
            Integers or floating-point numbers without NaN. Neither n nor b may be 0, and b is at
            most 4096.
        """
        logits = _check.array_2d("logits", array)
        if logits.dtype.kind not in "iuf":
            raise InputError(f"logits must be real numbers, got {_check.describe(logits)}")
        if logits.dtype.kind == "f" and np.isnan(logits).any():
            row = int(np.argwhere(np.isnan(logits))[0][0])
            raise InputError(f"logits must not be NaN, row {row} has one; NaN has no sign")
        _check.whole("bits per item", logits.shape[1], 1, MAX_BITS)
        return cls(np.packbits(logits > 0, axis=1), logits.shape[1])

    @classmethod
    def from_int8(cls, array: Any, n_bits: int | None = None) -> "BinaryCodes":
        """Take packed bytes of which 128 was subtracted, int8 of shape (n, bytes).

        sentence-transformers gives such codes for precision="binary"; those for precision="ubinary"
        are packed bytes already, for `BinaryCodes(packed, n_bits)`.

        Parameters
        ----------
        array : array-like of int8, shape (n, ceil(n_bits / 8))
            Packed codes, each byte less 128.
        n_bits : int or None, default=None
            Code length. None takes all bits of every byte, so 8 times the number of columns.
        """
        shifted = _check.array_2d("codes", array, "bytes")
        if shifted.dtype != np.int8:
            raise InputError(
                f"codes must be int8 of shape (n, bytes), got {_check.describe(shifted)}"
            )
        packed = (shifted.astype(np.int16) + _INT8_OFFSET).astype(np.uint8)
        return cls(packed, 8 * shifted.shape[1] if n_bits is None else n_bits)

    @classmethod
    def concatenate(cls, parts: "Sequence[BinaryCodes]") -> "BinaryCodes":
        """Codes one after the other, of one length, from one model and for one side.

        Parameters
        ----------
        parts : sequence of BinaryCodes
            At least one set of codes. Codes of an unknown model may be joined with any others, and
            so may codes that serve as both queries and items.

        Returns
        -------
        BinaryCodes
            A copy of all codes in the order of `parts`, with the model and the side that are
            known, if any.
        """
        if not parts:
            raise InputError("parts must hold at least one set of codes")
        model = side = None
        for codes in parts:
            if codes.n_bits != parts[0].n_bits:
                raise InputError(
                    f"parts must have one length, got {parts[0].n_bits} and {codes.n_bits} bits"
                )
            require_same_model(model, codes.model, "some of the codes", "others")
            require_same_side(side, codes.side)
            model, side = model or codes.model, side or codes.side
        with unchanged(*parts):
            packed = np.concatenate([codes.packed for codes in parts])
        return cls(packed, parts[0].n_bits, model, side)

    def bits(self) -> np.ndarray:
        """The codes as an (n, b) uint8 array of 0 and 1."""
        with unchanged(self):
            return np.unpackbits(self.packed, axis=1, count=self.n_bits)

    def __len__(self) -> int:
        return len(self._packed)

    def __repr__(self) -> str:
        side = "" if self.side is None else f", side={self.side!r}"
        return f"BinaryCodes(n={len(self)}, n_bits={self.n_bits}{side})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BinaryCodes):
            return NotImplemented
        with unchanged(self, other):
            return self.n_bits == other.n_bits and np.array_equal(self.packed, other.packed)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, rows: Any) -> "BinaryCodes":
        """Codes of some rows: a slice (no copy), an index array, a mask, or one row number."""
        if isinstance(rows, tuple):
            raise InputError("codes are sliced by rows only: codes[rows]")
        with unchanged(self):
            packed = self.packed[rows]
        packed = packed if packed.ndim == 2 else packed[None]
        return BinaryCodes(packed, self.n_bits, self.model, self.side)

    def __iter__(self) -> Iterator["BinaryCodes"]:
        return (self[row] for row in range(len(self)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file of the packed bytes that says their number of bits, model and side.

        The ending says the format: .npz, .parquet, .safetensors; any other is a .npy.
        """
        note = Note(self.n_bits, self.model, self.side)
        files.write_codes(path, note, len(self), files.in_blocks(self.packed))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], n_bits: int | None = None, key: str | None = None
    ) -> "BinaryCodes":
        """The codes of a saved file; a .npy is mapped: nothing is read before it is used.

        Files of packed bytes that other programs wrote can be loaded too: a .npy, an array `codes`
        of a .npz or .safetensors, or a column of a .parquet that holds bytes of one length.

        Parameters
        ----------
        path : str or path-like
            The file. Its ending says the format: .npz, .parquet or .safetensors; a file with any
            other ending is read as a .npy.
        n_bits : int or None, default=None
            Code length. None takes what the file says or, if it does not say, 8 bits per byte. A
            length that contradicts the file is refused.
        key : str or None, default=None
            Name of the column of a .parquet file. None takes its only column of bytes of one
            length. For .npz and .safetensors it may only be "codes"; for .npy it must be None.
        """
        packed, note = files.read_codes(path, key)
        bits = note.resolve_bits(n_bits, packed.shape[1], os.fspath(path))
        return cls(packed, bits, note.model, note.side)


def _advice(array: np.ndarray, width: int) -> str:
    """What to do with an array that is not packed codes."""
    if array.dtype == np.int8 and array.ndim == 2 and array.shape[1] == width:
        return (
            "int8 codes of sentence-transformers (precision='binary') are packed bytes less 128: "
            "convert them with BinaryCodes.from_int8(codes, n_bits)"
        )
    return (
        "pack bits with BinaryCodes.from_bits() and real values with BinaryCodes.from_logits(), "
        "where a bit is 1 for a value above 0"
    )
