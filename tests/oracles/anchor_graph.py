"""Anchor graphs the plain way: weights row by row, and the graph of all rows. Tests only."""

import math

import numpy as np


def weights_of(rows, anchors, gamma, n_nearest):
    """Z (n, m): each row's weights on its nearest anchors, which sum to 1."""
    table = np.zeros((len(rows), len(anchors)))
    for i, row in enumerate(rows):
        squares = [
            sum((a - b) ** 2 for a, b in zip(row, anchor, strict=True)) for anchor in anchors
        ]
        nearest = sorted(range(len(anchors)), key=lambda j: (squares[j], j))[:n_nearest]
        for j in nearest:
            table[i, j] = math.exp(-gamma * squares[j])
        table[i] /= table[i].sum()
    return table


def similarities(table, other=None):
    """A = Z L^(-1) Z' with L of `table`; of the rows of `other` with these, if it is given."""
    return (table if other is None else other) @ np.diag(1 / table.sum(axis=0)) @ table.T


def cut(values, thresholds, graph):
    """f'(I - A) f for f = |y| less the threshold of its side."""
    low, high = thresholds
    f = np.array([abs(value) - (high if value > 0 else low) for value in values])
    return f @ f - f @ graph @ f
