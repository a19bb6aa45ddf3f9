"""Codes from files: packed bytes, bits as 0/1 or -1/+1, or real values whose sign is the bit.

Notation:
    b  bits in a code       w  columns in the file
"""

import os

import numpy as np

from rankbits import _check
from rankbits.codes import MAX_BITS, BinaryCodes, files
from rankbits.datasets._arrays import load_array, require_data_file, split_key
from rankbits.errors import InputError

FORMS = ("auto", "packed", "bits", "logits")
_SAMPLE_CELLS = 1 << 20  # looked at together to see whether floats are bits
_INT8_ADVICE = (
    "if these are int8 codes of sentence-transformers (precision='binary'), save "
    "(codes.astype(np.int16) + 128).astype(np.uint8) instead, or encode with precision='ubinary'"
)


def load_codes(
    path: str | os.PathLike[str],
    n_bits: int | None = None,
    form: str = "auto",
    key: str | None = None,
) -> BinaryCodes:
    """Load codes from a file of packed bytes, of bits, or of real values.

    Parameters
    ----------
    path : str or path-like
        The file, which ends in .npy, .npz, .parquet or .safetensors. FILE:KEY is the file FILE
        with the key KEY.
    n_bits : int or None, default=None
        Code length b, 1 to 4096. None takes what the file says, or else what the number of columns
        says; "auto" needs a length for uint8 that may be packed. A length that contradicts the
        file is refused.
    form : {"auto", "packed", "bits", "logits"}, default="auto"
        How the w columns of the file hold the b bits of a code.

        - "packed": bytes (uint8), w = ceil(b / 8).
        - "bits": 0/1, -1/+1 or bool, w = b.
        - "logits": real values, w = b. A bit is 1 where the value is > 0.
        - "auto": what `BinaryCodes.save` wrote is packed, and the file says b. Bools, floats and
          integers other than uint8 are bits, and are refused if they have other values. For
          uint8, the width says whether it is packed or bits. Without `n_bits`, uint8 is bits if
          it holds both 0 and 1 and no other value, and is refused otherwise.
    key : str or None, default=None
        Name of the array, or of the column of a .parquet, where the file holds several; see
        `load_array`.
    """
    _check.choice("form", form, FORMS)
    if n_bits is not None:
        n_bits = _check.whole("n_bits", n_bits, 1, MAX_BITS)
    file, key = split_key(path, key)
    require_data_file(file)
    if form in ("auto", "packed") and files.read_note(file, key) is not None:
        return BinaryCodes.load(file, n_bits, key)
    array = load_array(file, key)
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


def _form_of(array: np.ndarray, n_bits: int | None, path: str | os.PathLike[str]) -> str:
    """The form of an array, recognized by its type and values."""
    width = array.shape[1]
    if array.dtype.kind == "f":
        _refuse_real_values(array, path)
        return "bits"
    if array.dtype != np.uint8:
        return "bits"
    if n_bits is None:
        if np.array_equal(np.unique(array), [0, 1]):
            return "bits"
        raise InputError(
            f"{path} holds {_check.describe(np.asarray(array))}, which may be {8 * width} bits "
            f"packed or fewer; say how many with n_bits= or --bits"
        )
    is_bits = width == n_bits and (width > 1 or array.max() <= 1)
    return "bits" if is_bits else "packed"


def _refuse_real_values(array: np.ndarray, path: str | os.PathLike[str]) -> None:
    """Refuse floats other than 0, 1 and -1: only the caller knows whether their signs are codes."""
    step = max(1, _SAMPLE_CELLS // array.shape[1])
    for start in range(0, len(array), step):
        block = np.asarray(array[start : start + step])
        is_bit = (np.abs(block) == 1) | (block == 0)
        if not is_bit.all():
            raise InputError(
                f"{path} must hold codes, got real values such as {block[~is_bit][0]:.6g} "
                f"({array.dtype} of shape {array.shape}); to use their signs as bits say so with "
                "--codes logits or form='logits', or learn codes of them with rankbits fit"
            )


def _require_width(
    array: np.ndarray, n_bits: int | None, form: str, path: str | os.PathLike[str]
) -> None:
    """Refuse an array whose columns are not those that n_bits bits take in this form."""
    if n_bits is None:
        return
    bytes_wide = -(-n_bits // 8)
    if form == "packed" and (array.dtype != np.uint8 or array.shape[1] != bytes_wide):
        expected = f"uint8 of shape (n, {bytes_wide}) if packed, (n, {n_bits}) if not"
    elif form != "packed" and array.shape[1] != n_bits:
        expected = f"{array.dtype} of shape (n, {n_bits}), or packed as uint8 (n, {bytes_wide})"
    else:
        return
    advice = ""
    if array.dtype == np.int8 and array.shape[1] == bytes_wide:
        advice = f"; {_INT8_ADVICE}"
    raise InputError(
        f"{path} must hold codes of {n_bits} bits, {expected}; "
        f"got {_check.describe(np.asarray(array))}{advice}"
    )
