"""Bitwise descent: codes that minimize a quadratic function, one bit of all rows at a time.

    minimize  tr(B M B') - 2 tr(B Q')    over B (n, b) of -1 and +1

with M (b, b) symmetric and Q (n, b). The diagonal of M does not count, because the square of a bit
is 1. With all other bits given, bit k of every row has a closed form,

    b_k = sign(q_k - sum over l other than k of M_lk b_l),

so a cycle through the bits never raises the function (F. Shen, C. Shen, W. Liu, H. T. Shen,
"Supervised discrete hashing", CVPR 2015).
"""

import numpy as np


def descend_bits(
    bits: np.ndarray, matrix: np.ndarray, targets: np.ndarray, max_cycles: int
) -> np.ndarray:
    """B after so many cycles from `bits`, or once a cycle changes no bit; sign(0) is 1.

    >>> matrix, targets = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[3.0, -1.0]])
    >>> descend_bits(np.ones((1, 2)), matrix, targets, 9)
    array([[ 1., -1.]])
    """
    bits, off_diagonal = bits.copy(), matrix - np.diag(np.diag(matrix))
    for _ in range(max_cycles):
        before = bits.copy()
        for k in range(bits.shape[1]):
            bits[:, k] = np.where(targets[:, k] - bits @ off_diagonal[:, k] >= 0, 1.0, -1.0)
        if np.array_equal(before, bits):
            break
    return bits


def signs_of(values: np.ndarray) -> np.ndarray:
    """1 where a value is positive, else -1."""
    return np.where(values > 0, 1.0, -1.0)
