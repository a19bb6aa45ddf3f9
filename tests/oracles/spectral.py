"""Spectral hashing the plain way: all modes of a box, and the Laplacian of a graph. Tests only."""

import math

import numpy as np


def smallest_modes(widths, n_modes):
    """(axis, mode) of the smallest frequencies k pi / width, by sorting far more than needed."""
    frequencies = [
        (round(mode / width, 9), axis, mode)
        for axis, width in enumerate(widths)
        for mode in range(1, n_modes + 1)
    ]
    return [(axis, mode) for _, axis, mode in sorted(frequencies)[:n_modes]]


def bits_of_row(row, mean, directions, low, widths, modes):
    """sign(sin(pi / 2 + w (x - low))), bit by bit."""
    bits = []
    for axis, mode in modes:
        part = sum((row[k] - mean[k]) * directions[k][axis] for k in range(len(row)))
        bits.append(math.sin(math.pi / 2 + mode * math.pi / widths[axis] * (part - low[axis])) > 0)
    return bits


def laplacian_eigenvectors(rows, bandwidth, n_vectors):
    """The smoothest vectors on the graph of exp(-|x - y|² / bandwidth²), without the constant one.

    The random-walk Laplacian's, which do not depend on how many neighbors a row has.
    """
    squares = np.square(rows[:, None] - rows).sum(axis=2)
    weights = np.exp(-squares / bandwidth**2)
    degrees = weights.sum(axis=1)
    symmetric = weights / np.sqrt(np.outer(degrees, degrees))
    vectors = np.linalg.eigh(symmetric)[1][:, ::-1] / np.sqrt(degrees)[:, None]
    return vectors[:, 1 : n_vectors + 1]
