"""KSH the plain way: tables of all pairs, and the paper's generalized eigenproblem. Tests only."""

import numpy as np
from scipy.linalg import eigh


def similarity_table(is_relevant):
    """S (n, n), pair by pair: 1 if either row is relevant to the other or both are one, else -1."""
    n = len(is_relevant)
    table = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            table[i, j] = 1 if i == j or is_relevant[i][j] or is_relevant[j][i] else -1
    return table


def features(rows, anchors, gamma):
    """Centered RBF features (n, m), one by one."""
    table = np.array([[np.exp(-gamma * ((x - a) ** 2).sum()) for a in anchors] for x in rows])
    return table - table.mean(axis=0)


def greedy_spectral_bits(K, S, n_bits):
    """Bits (n, b) of 1 and -1: each the largest a'K'RKa / a'K'Ka, R = b S less earlier bits.

    The sign of a bit is that of its first row.
    """
    bits, R = [], n_bits * S
    for _ in range(n_bits):
        a = eigh(K.T @ R @ K, K.T @ K)[1][:, -1]
        h = np.where(K @ a > 0, 1.0, -1.0)
        R = R - np.outer(h, h)
        bits.append(h * h[0])
    return np.column_stack(bits)


def losses(bits, S, n_bits):
    """|H H' / b - S|² / n² of the first 1, 2, ... bits."""
    return [
        np.mean((bits[:, :k] @ bits[:, :k].T / n_bits - S) ** 2)
        for k in range(1, bits.shape[1] + 1)
    ]
