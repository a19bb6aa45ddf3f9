"""Losses of a pair of codes, and what they say of one bit.

The loss of a pair depends on its Hamming distance d out of b bits and on whether it is similar:

    hinge         similar: d²              dissimilar: max(0, b/2 - d)²
    ksh           (s - b)² or (s + b)²,    s = b - 2d the inner product of codes of -1 and +1
    exponential   exp(-s / b) or exp(s / b)

If all bits but one are given and differ in d places, the pair costs L(d) where this bit is equal
and L(d + 1) where it differs. For bits z of -1 and +1 the sum over all pairs is, up to a constant,

    sum over i, j of  a_ij z_i z_j / 2,    a_ij = L(d_ij) - L(d_ij + 1)

which any loss turns into: a_ij <= 0 for similar pairs and a_ij >= 0 for dissimilar ones [1]_.

.. [1] G. Lin, C. Shen, D. Suter and A. van den Hengel, "A general two-step approach to
   learning-based hashing", ICCV 2013.
"""

import numpy as np

from rankbits.methods.shallow.shared.pair_sampling import Pairs

LOSSES = ("hinge", "ksh", "exponential")


def loss_table(loss: str, n_bits: int) -> np.ndarray:
    """Loss at each distance 0..b, shape (2, b + 1): of dissimilar pairs, then of similar ones.

    >>> loss_table("hinge", 4)
    array([[ 4.,  1.,  0.,  0.,  0.],
           [ 0.,  1.,  4.,  9., 16.]])
    """
    distance = np.arange(n_bits + 1)
    product = n_bits - 2.0 * distance
    if loss == "hinge":
        return np.stack([np.maximum(0.0, n_bits / 2.0 - distance) ** 2, distance**2.0])
    if loss == "ksh":
        return np.stack([(product + n_bits) ** 2, (product - n_bits) ** 2])
    return np.stack([np.exp(product / n_bits), np.exp(-product / n_bits)])


def pair_losses(loss: str, n_bits: int, distances: np.ndarray, pairs: Pairs) -> np.ndarray:
    """Loss of each pair whose codes of so many bits differ in so many places."""
    losses: np.ndarray = loss_table(loss, n_bits)[pairs.is_similar.astype(np.intp), distances]
    return losses


def bit_weights(loss: str, n_bits: int, distances: np.ndarray, pairs: Pairs) -> np.ndarray:
    """Weight a of each pair: what it saves, or costs if negative, that one more bit differs.

    `n_bits` counts this bit, `distances` are those of the other bits.
    """
    table = loss_table(loss, n_bits)
    saved = table[:, :-1] - table[:, 1:]
    weights: np.ndarray = saved[pairs.is_similar.astype(np.intp), distances]
    return weights
