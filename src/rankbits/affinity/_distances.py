"""Distances between vectors in blocks, and the checks of what is given as vectors."""

from typing import Any

import numpy as np

from rankbits import _check
from rankbits.errors import InputError

ROUNDING = 1e-12  # relative to the squared norms; a product of 10^4 terms stays within it
_BLOCK_CELLS = 1 << 17


def read_reals(name: str, values: Any) -> np.ndarray:
    numbers = _check.array(name, values)
    if numbers.dtype.kind not in "iuf":
        raise InputError(f"{name} must be real numbers, got {_check.describe(numbers)}")
    return numbers.astype(float)


def read_vectors(name: str, values: Any) -> np.ndarray:
    array = _check.array_2d(name, values, columns="features")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be real numbers, got {_check.describe(array)}")
    _check.finite(name, array)
    return array


def square_distances(a: np.ndarray, b: np.ndarray, recheck: np.ndarray) -> np.ndarray:
    """Squared L2 distances in double, by one matrix product.

    Its rounding depends on the block; a pair that lies on a threshold of `recheck` up to that
    rounding is computed again as a plain sum, so that levels do not depend on how the work was cut.
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    norms = np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b)[None]
    squares: np.ndarray = norms - 2.0 * (a @ b.T)
    step = max(1, _BLOCK_CELLS // a.shape[1])
    for threshold in recheck:
        pairs = np.argwhere(np.abs(squares - threshold) <= ROUNDING * norms)
        for start in range(0, len(pairs), step):
            rows, columns = pairs[start : start + step].T
            difference = a[rows] - b[columns]
            squares[rows, columns] = np.einsum("ij,ij->i", difference, difference)
    np.maximum(squares, 0.0, out=squares)
    return squares
