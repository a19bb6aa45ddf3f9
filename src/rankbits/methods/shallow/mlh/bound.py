"""MLH's loss of a pair of codes, and an upper bound of it that has a gradient.

The loss of a pair depends on its Hamming distance m, on a radius ρ and on whether it is similar:

    similar: max(0, m - ρ + 1)        other: λ max(0, ρ - m + 1)

With logits u and v of its rows, the codes g, h of -1 and +1 that maximize g'u + h'v are the signs,
so their loss is at most

    max over g, h of (loss(g, h) + g'u + h'v)  -  (|u|_1 + |v|_1)

The maximum is exact. Equal in bit k, the pair of codes gains |u_k + v_k| there, different |u_k -
v_k|; the m bits that differ are those with the largest difference of both. Sorted once, the sums of
the first m = 0..b give the value of every distance, and the best one is taken.

M. Norouzi, D. J. Fleet, "Minimal loss hashing for compact binary codes", ICML 2011.
"""

import numpy as np

from rankbits.methods.shallow.shared.bitwise import signs_of


def hinge_table(n_bits: int, radius: int, slope: float) -> np.ndarray:
    """Loss at each distance 0..b, shape (2, b + 1): of other pairs, then of similar ones.

    >>> hinge_table(4, 2, 0.5)
    array([[1.5, 1. , 0.5, 0. , 0. ],
           [0. , 0. , 1. , 2. , 3. ]])
    """
    distances = np.arange(n_bits + 1)
    other = slope * np.maximum(0.0, radius - distances + 1)
    return np.stack([other, np.maximum(0.0, distances - radius + 1)])


def most_violating(
    u: np.ndarray, v: np.ndarray, losses: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes g and h (n, b) of the maximum, and its value (n,), of pairs with logits u and v (n, b).

    `losses` has the loss of each pair at each distance, (n, b + 1).
    """
    n, n_bits = u.shape
    gains = np.abs(u - v) - np.abs(u + v)
    order = np.argsort(-gains, axis=1)
    sums = np.zeros((n, n_bits + 1))
    np.cumsum(np.take_along_axis(gains, order, axis=1), axis=1, out=sums[:, 1:])
    values = sums + losses
    distances = values.argmax(axis=1)
    differs = np.zeros((n, n_bits), bool)
    np.put_along_axis(differs, order, np.arange(n_bits) < distances[:, None], axis=1)
    g = signs_of(np.where(differs, u - v, u + v))
    best = np.take_along_axis(values, distances[:, None], axis=1)[:, 0]
    return g, np.where(differs, -g, g), best + np.abs(u + v).sum(axis=1)


def bound_and_slopes(
    u: np.ndarray, v: np.ndarray, losses: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The bound of each pair (n,), and its slopes in u and v, g - sign(u) and h - sign(v)."""
    g, h, values = most_violating(u, v, losses)
    bounds = values - np.abs(u).sum(axis=1) - np.abs(v).sum(axis=1)
    return bounds, g - signs_of(u), h - signs_of(v)
