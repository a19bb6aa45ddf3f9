"""Codes out of files: packed bytes, bits as 0/1 or -1/+1, or real values whose sign is the bit.

Notation:
    b  bits in a code       w  columns in the file
"""

import os

import numpy as np

from rankbits import _check
from rankbits.codes import MAX_BITS, BinaryCodes
from rankbits.datasets._arrays import load_array, split_key
from rankbits.errors import InputError

FORMS = ("auto", "packed", "bits", "logits")


def load_codes(
    path: str | os.PathLike[str],
    n_bits: int | None = None,
    form: str = "auto",
    key: str | None = None,
) -> BinaryCodes:
    """Load codes from a file, see `load_array` for path and key.

    Parameters
    ----------
    n_bits : int, code length b; needed where the file does not tell it
    form : how the w columns of the file hold the b bits of a code
        "packed": bytes (uint8), w = ceil(b / 8). "bits": 0/1, -1/+1 or bool, w = b. "logits": real
        values, w = b, a bit is 1 where the value is > 0. "auto": what `BinaryCodes.save` wrote is
        packed and tells b; floats are logits; bools and signed integers are bits; uint8 is packed
        or bits by its width, and without n_bits it is bits if it holds both 0 and 1 and no other
        value, else refused.
    """
    _check.choice("form", form, FORMS)
    if n_bits is not None:
        n_bits = _check.whole("n_bits", n_bits, 1, MAX_BITS)
    file, key = split_key(path, key)
    array = load_array(file, key)
    if form in ("auto", "packed") and _was_saved(file, array):
        return BinaryCodes.load(file, n_bits)
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "biuf":
        raise InputError(
            f"{path} must hold codes, numbers of shape (n, columns) with n > 0, "
            f"got {_check.describe(np.asarray(array))}"
        )
    form = _form_of(array, n_bits, path) if form == "auto" else form
    _require_width(array, n_bits, form, path)
    try:
        return _pack(array, n_bits, form)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _pack(array: np.ndarray, n_bits: int | None, form: str) -> BinaryCodes:
    if form == "packed":
        return BinaryCodes(array, n_bits or 8 * array.shape[1])
    return BinaryCodes.from_bits(array) if form == "bits" else BinaryCodes.from_logits(array)


def _was_saved(file: str, array: np.ndarray) -> bool:
    """Whether `BinaryCodes.save` wrote it: its .npy has version 2.0 and a tail after the array."""
    if not isinstance(array, np.memmap) or array.dtype != np.uint8:
        return False
    with open(file, "rb") as start:
        version = np.lib.format.read_magic(start)
    return version == (2, 0) or os.path.getsize(file) > array.offset + array.nbytes


def _form_of(array: np.ndarray, n_bits: int | None, path: str | os.PathLike[str]) -> str:
    """The form of an array that came without one."""
    width = array.shape[1]
    if array.dtype.kind == "f":
        return "logits"
    if array.dtype != np.uint8:
        return "bits"
    if n_bits is None:
        if np.array_equal(np.unique(array), [0, 1]):
            return "bits"
        raise InputError(
            f"{path} holds {_check.describe(np.asarray(array))}, which may be {8 * width} bits "
            f"packed or fewer; say how many: n_bits=, --bits"
        )
    is_bits = width == n_bits and (width > 1 or array.max() <= 1)
    return "bits" if is_bits else "packed"


def _require_width(
    array: np.ndarray, n_bits: int | None, form: str, path: str | os.PathLike[str]
) -> None:
    """The columns that n_bits bits take in this form."""
    if n_bits is None:
        return
    bytes_wide = -(-n_bits // 8)
    if form == "packed" and (array.dtype != np.uint8 or array.shape[1] != bytes_wide):
        wanted = f"uint8 of shape (n, {bytes_wide}) if packed, (n, {n_bits}) if not"
    elif form != "packed" and array.shape[1] != n_bits:
        wanted = f"{array.dtype} of shape (n, {n_bits}), or packed as uint8 (n, {bytes_wide})"
    else:
        return
    raise InputError(
        f"{path} must hold codes of {n_bits} bits, {wanted}; "
        f"got {_check.describe(np.asarray(array))}"
    )
