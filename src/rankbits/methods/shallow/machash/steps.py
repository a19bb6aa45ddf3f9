"""The two steps of MACHash: codes given functions, and functions given codes.

Notation, as in `machash`:
    Z  codes of -1 and +1, shape (n, b)      h  linear support vector machines, one for each bit
    μ  weight of (Z - h(X))²                 E  mean loss of Z + μ times its mean (Z - h(X))²
"""

from dataclasses import dataclass

import numpy as np

from rankbits.methods.shallow.shared.bitwise import signs_of
from rankbits.methods.shallow.shared.block_cuts import group_rows, minimize_bit, spectral_bits
from rankbits.methods.shallow.shared.pair_losses import bit_weights, loss_table, pair_losses
from rankbits.methods.shallow.shared.pair_sampling import Pairs


class Codes:
    """The Z step: codes of all rows, at a low loss of their pairs.

    Attributes
    ----------
    bits : ndarray of float64, shape (n, b)
        Z.
    """

    def __init__(self, pairs: Pairs, loss: str, n_bits: int) -> None:
        self.pairs, self.loss, self.n_bits = pairs, loss, n_bits
        self.blocks = group_rows(pairs)
        self.scale = float(loss_table(loss, n_bits).max())
        self.bits = np.ones((pairs.n_rows, n_bits))

    def start(self, rng: np.random.Generator) -> None:
        """Learn the codes bit by bit without any functions, by the loss of the bits so far."""
        distances = np.zeros(len(self.pairs.first), np.int64)
        for bit in range(self.n_bits):
            weights = bit_weights(self.loss, bit + 1, distances, self.pairs)
            matrix = self.pairs.matrix(weights / 2.0)
            self.bits[:, bit] = minimize_bit(matrix, self.blocks, spectral_bits(matrix, rng))
            distances += self.pairs.differ(self.bits[:, bit])

    def step(self, predicted: np.ndarray, penalty: float) -> None:
        """Lower E for given h(X), each bit once.

        E is multiplied by the scale of the loss and by the number of pairs.
        """
        n_rows, n_pairs = self.pairs.n_rows, len(self.pairs.first)
        unit = 2.0 * penalty * self.scale * n_pairs / (n_rows * self.n_bits)
        distances = self.pairs.count_differing(self.bits)
        for bit in range(self.n_bits):
            others = distances - self.pairs.differ(self.bits[:, bit])
            weights = bit_weights(self.loss, self.n_bits, others, self.pairs)
            linear = -unit * predicted[:, bit]
            matrix = self.pairs.matrix(weights / 2.0)
            self.bits[:, bit] = minimize_bit(
                matrix, self.blocks, self.bits[:, bit], linear, max_rounds=1
            )
            distances = others + self.pairs.differ(self.bits[:, bit])

    def mean_loss(self, bits: np.ndarray) -> float:
        """Mean loss of the pairs under any codes, divided by the largest that a pair can have."""
        losses = pair_losses(self.loss, self.n_bits, self.pairs.count_differing(bits), self.pairs)
        return float(losses.mean()) / self.scale

    def objective(self, predicted: np.ndarray, penalty: float) -> float:
        """E."""
        return self.mean_loss(self.bits) + penalty * float(np.square(self.bits - predicted).mean())


@dataclass(frozen=True, eq=False)
class Machines:
    """The h step: linear support vector machines with the squared hinge loss.

    Attributes
    ----------
    planes : ndarray of shape (d, b)
    offsets : ndarray of shape (b,)
    """

    planes: np.ndarray
    offsets: np.ndarray

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """h(X): -1 and +1, shape (n, b)."""
        return signs_of(rows @ self.planes + self.offsets)

    def refit(self, rows: np.ndarray, bits: np.ndarray, regularization: float) -> "Machines":
        """Machines fitted to other bits; those that err on no more rows than these are taken."""
        fitted = fit_machines(rows, bits, regularization)
        n_wrong, n_wrong_before = (
            np.sum(machines.predict(rows) != bits, axis=0) for machines in (fitted, self)
        )
        is_better = n_wrong <= n_wrong_before
        return Machines(
            np.where(is_better, fitted.planes, self.planes),
            np.where(is_better, fitted.offsets, self.offsets),
        )


def fit_machines(rows: np.ndarray, bits: np.ndarray, regularization: float) -> Machines:
    """Machines that minimize λ/2 (|w|² + c²) + the mean of max(0, 1 - z (w'x + c))².

    A bit that is the same for all rows is an offset without a plane.
    """
    from sklearn.svm import LinearSVC  # slow to import, and only fitting needs it

    planes, offsets = np.zeros((rows.shape[1], bits.shape[1])), np.zeros(bits.shape[1])
    strength = 1.0 / (regularization * len(rows))
    for place, bit in enumerate(bits.T):
        if (bit == bit[0]).all():
            offsets[place] = bit[0]
            continue
        machine = LinearSVC(C=strength, dual=False, random_state=0).fit(rows, bit)
        planes[:, place], offsets[place] = machine.coef_[0], machine.intercept_[0]
    return Machines(planes, offsets)
