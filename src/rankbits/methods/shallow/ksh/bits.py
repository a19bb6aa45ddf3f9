"""KSH's bits: one after another, each fitted to what the earlier ones leave of the similarities.

With rows Z (n, r) and the first k bits h_1, ..., h_k, the residual is R = b S - sum of h h'. The
next bit is h = sign(Z a) with a large h'R h, since

    |R - h h'|² = |R|² - 2 h'R h + n²

First a is the direction of the largest a'Z'R Z a under |Z a|² = n: an eigenvector, because the rows
are whitened (Z'Z = n I). Then -s'R s with s = tanh(Z a / 2) is lowered from there, a smooth version
of -h'R h. Whichever of both has the larger h'R h becomes the bit.

Notation:
    n  rows    b  bits    r  directions of the rows    S  (n, n) similarities, 1 or -1
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from rankbits.methods.shallow.shared.accelerated import minimize_accelerated
from rankbits.methods.shallow.shared.bitwise import signs_of
from rankbits.methods.shallow.shared.eigenproblems import leading_eigenvectors
from rankbits.methods.shallow.shared.similarity import Similarity

_LEAST = 1e-10  # of the largest: variances below are rounding errors
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Bit:
    """One bit: its direction (r,), and what became of the residual.

    Attributes
    ----------
    direction : ndarray of shape (r,)
    spectral, smooth : float
        h'R h / (b n²) of the eigenvector and of the smoothed descent; the larger one was taken.
    loss : float
        |sum of h h' / b - S|² / n² over the bits so far.
    """

    direction: np.ndarray
    spectral: float
    smooth: float
    loss: float

    def to_record(self) -> dict[str, Any]:
        """The numbers, for a history."""
        return {"spectral": self.spectral, "smooth": self.smooth, "loss": self.loss}


class Residual:
    """R = b S - sum of h h', multiplied without being written down."""

    def __init__(self, similarity: Similarity, n_bits: int) -> None:
        self.similarity, self.n_bits = similarity, n_bits
        self.bits = np.empty((similarity.n_rows, 0))
        self.square = float(n_bits * similarity.n_rows) ** 2  # |R|²

    def __matmul__(self, vector: np.ndarray) -> np.ndarray:
        """R v."""
        explained = self.bits @ (self.bits.T @ vector)
        product: np.ndarray = self.n_bits * (self.similarity @ vector) - explained
        return product

    def fit(self, bit: np.ndarray) -> float:
        """The value of h'R h."""
        return float(bit @ (self @ bit))

    def remove(self, bit: np.ndarray) -> None:
        """Take h h' off."""
        self.square += len(bit) ** 2 - 2 * self.fit(bit)
        self.bits = np.column_stack([self.bits, bit])


class SmoothFit:
    """-s'R s with s = tanh(Z a / 2), in units of b n², as a function of a."""

    def __init__(self, rows: np.ndarray, residual: Residual) -> None:
        self.rows, self.residual = rows, residual
        self.unit = float(residual.n_bits) * len(rows) ** 2

    def value(self, direction: np.ndarray) -> float:
        """The value at a."""
        soft = np.tanh(self.rows @ direction / 2)
        return -float(soft @ (self.residual @ soft)) / self.unit

    def at(self, direction: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and its gradient -Z'((R s) (1 - s²)): the slope of tanh(u / 2) is half that."""
        soft = np.tanh(self.rows @ direction / 2)
        pull = self.residual @ soft
        gradient = self.rows.T @ (pull * (1 - soft**2))
        return -float(soft @ pull) / self.unit, -gradient / self.unit


def whiten(centered: np.ndarray) -> np.ndarray:
    """A basis (D, r) in which centered rows (n, D) have variance 1 and are not correlated."""
    variances, vectors = eigh(centered.T @ centered / len(centered))
    is_large = variances > _LEAST * variances[-1]
    basis: np.ndarray = vectors[:, is_large] / np.sqrt(variances[is_large])
    return basis


def learn_bits(
    rows: np.ndarray, similarity: Similarity, n_bits: int, max_steps: int
) -> Iterator[Bit]:
    """The bits of whitened rows, each with its direction, one after another."""
    residual = Residual(similarity, n_bits)
    matrix = n_bits * (rows.T @ (similarity @ rows))  # Z'R Z
    unit = n_bits * len(rows) ** 2
    for _ in range(n_bits):
        spectral = leading_eigenvectors(matrix, 1)[0][:, 0]
        smooth = minimize_accelerated(SmoothFit(rows, residual), spectral, max_steps, _TOLERANCE)
        spectral_fit, smooth_fit = (
            residual.fit(signs_of(rows @ a)) / unit for a in (spectral, smooth)
        )
        direction = smooth if smooth_fit >= spectral_fit else spectral
        bit = signs_of(rows @ direction)
        residual.remove(bit)
        matrix -= np.outer(rows.T @ bit, rows.T @ bit)
        yield Bit(direction, spectral_fit, smooth_fit, residual.square / unit / n_bits)
