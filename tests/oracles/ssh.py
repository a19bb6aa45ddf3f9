"""SSH the plain way: means over pairs of rows, one by one. Tests only."""

import numpy as np


def matrix(rows, labeled, is_similar, variance_weight):
    """M: similar pairs less other pairs of labeled rows, plus the variance of all rows."""
    d = rows.shape[1]
    sums, counts = {True: np.zeros((d, d)), False: np.zeros((d, d))}, {True: 0, False: 0}
    for a, i in enumerate(labeled):
        for b, j in enumerate(labeled):
            if i != j:
                kind = bool(is_similar[a][b])
                sums[kind] += np.outer(rows[i], rows[j])
                counts[kind] += 1
    variance = sum(np.outer(x, x) for x in rows) / len(rows)
    return sums[True] / counts[True] - sums[False] / counts[False] + variance_weight * variance


def penalized(W, M, rho):
    """The value of tr(W'M W) - ρ/2 |W'W - I|²."""
    return np.trace(W.T @ M @ W) - rho / 2 * np.sum((W.T @ W - np.eye(W.shape[1])) ** 2)
