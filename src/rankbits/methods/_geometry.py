"""Hyperplanes and the rows they cut: the space that rows span, and planes turned to their signs."""

import numpy as np


def spanned(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (n, r) of the rows and an orthonormal basis (d, r) of their span.

    Along what no row has, planes learn nothing, and what they learn from may cost r² numbers. Rows
    that span all of their space keep their own coordinates.
    """
    n, d = rows.shape
    if n < d:
        _, lengths, right = np.linalg.svd(rows, full_matrices=False)
        values, vectors = lengths**2, right.T
    else:
        values, vectors = np.linalg.eigh(rows.T @ rows)
    kept = values > values.max() * max(n, d) * np.finfo(float).eps
    if kept.sum() == d:
        return rows, np.eye(d)
    return rows @ vectors[:, kept], vectors[:, kept]


def turned_to_signs(rows: np.ndarray, planes: np.ndarray, n_turns: int) -> np.ndarray:
    """W R, with the rotation R that ITQ finds for the signs of W'x.

    W = U S V' leaves R only V'R to choose, which has as many rows as W has rank: beyond that, bits
    cost no more than a thin singular value decomposition a turn.
    """
    basis, lengths, turn = np.linalg.svd(planes, full_matrices=False)
    basis = basis * lengths
    parts = rows @ basis
    bits = parts @ turn > 0
    for _ in range(n_turns):
        left, _, right = np.linalg.svd(parts.T @ np.where(bits, 1.0, -1.0), full_matrices=False)
        turn = left @ right
        before, bits = bits, parts @ turn > 0
        if np.array_equal(before, bits):
            break
    turned: np.ndarray = basis @ turn
    return turned
