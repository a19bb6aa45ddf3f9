"""BRE the plain way: Hamming distances pair by pair, and every value that a weight can have."""

import numpy as np


def loss(bits, first, second, targets):
    """Mean of (t - d / b)² over the pairs."""
    total = 0.0
    for i, j, target in zip(first, second, targets, strict=True):
        distance = sum(bits[i][k] != bits[j][k] for k in range(len(bits[i])))
        total += (target - distance / len(bits[i])) ** 2
    return total / len(targets)


def least_loss_of_a_weight(features, weights, point, k, first, second, targets):
    """The least loss over all values of weights[point, k], tried between all thresholds."""
    column = features[:, point]
    rest = features @ weights[:, k] - weights[point, k] * column
    thresholds = np.sort(-rest[column != 0] / column[column != 0])
    values = [thresholds[0] - 1, *(thresholds[:-1] + thresholds[1:]) / 2, thresholds[-1] + 1]
    losses = []
    for value in values:
        moved = weights.copy()
        moved[point, k] = value
        losses.append(loss(features @ moved > 0, first, second, targets))
    return min(losses)
