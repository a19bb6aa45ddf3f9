"""Bits of rows by trying every assignment, and losses of pairs by their definition: tests only."""

from itertools import product

import numpy as np


def least_energy(weights, linear):
    """The least sum of a_ij z_i z_j + u_i z_i over all z of -1 and +1, and one z that has it."""
    best = min(
        product((-1.0, 1.0), repeat=len(linear)),
        key=lambda z: np.dot(z, weights @ np.array(z)) + np.dot(linear, z),
    )
    return float(np.dot(best, weights @ np.array(best)) + np.dot(linear, best)), np.array(best)


def pair_loss(loss, one, other, is_similar):
    """Loss of two codes of -1 and +1."""
    b, d, s = len(one), sum(x != y for x, y in zip(one, other, strict=True)), np.dot(one, other)
    if loss == "hinge":
        return d**2 if is_similar else max(0.0, b / 2 - d) ** 2
    y = 1 if is_similar else -1
    return (s - b * y) ** 2 if loss == "ksh" else np.exp(-s * y / b)


def total_loss(loss, codes, pairs):
    """Sum of the losses of all pairs, each in both directions."""
    return sum(
        pair_loss(loss, codes[i], codes[j], is_similar)
        for i, j, is_similar in zip(pairs.first, pairs.second, pairs.is_similar, strict=True)
    )


def walk_tree(row, features, thresholds, leaves):
    """What one tree says of a row, node by node."""
    node = 0
    while node < len(features):
        node = 2 * node + (2 if row[features[node]] > thresholds[node] else 1)
    return leaves[node - len(features)]
