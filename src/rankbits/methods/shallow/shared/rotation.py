"""Rotations that bring rows nearest to their signs: ITQ's loop, for every method that turns planes.

Rows V (n, r) times R (r, b) are to lie close to codes B of -1 and +1. The loss |B - V R|² / n falls
in turns: for fixed R the best B is sign(V R); for fixed B the best R with R R' = I is Procrustes',
R = P Q' where P S Q' = V'B is a singular value decomposition. R is a rotation if r = b; there may
be fewer coordinates than bits.

Y. Gong, S. Lazebnik, "Iterative quantization: a procrustean approach to learning binary codes",
CVPR 2011.
"""

import numpy as np

from rankbits.methods.shallow.shared.principal import leading_directions

MAX_TURNS = 50


def random_rotation(size: int, rng: np.random.RandomState) -> np.ndarray:
    """A uniformly random orthogonal matrix: QR, with the signs of R's diagonal moved into Q."""
    orthogonal, upper = np.linalg.qr(rng.standard_normal((size, size)))
    rotation: np.ndarray = orthogonal * np.sign(np.diag(upper))
    return rotation


def learn_rotation(
    parts: np.ndarray, start: np.ndarray, max_turns: int = MAX_TURNS
) -> tuple[np.ndarray, np.ndarray]:
    """R (r, b) for rows (n, r), found in turns from `start`, and the losses on the way.

    The first loss is that of `start`; each turn adds one. The turns end once no bit changes.
    """
    rotation, rotated = start, parts @ start
    bits, losses = rotated > 0, [_loss(rotated)]
    for _ in range(max_turns):
        left, _, right = np.linalg.svd(parts.T @ np.where(bits, 1.0, -1.0), full_matrices=False)
        rotation = left @ right
        rotated = parts @ rotation
        losses.append(_loss(rotated))
        bits_before, bits = bits, rotated > 0
        if np.array_equal(bits_before, bits):
            break
    return rotation, np.array(losses)


def rotate_planes(rows: np.ndarray, planes: np.ndarray, max_turns: int = MAX_TURNS) -> np.ndarray:
    """W R, with the rotation R that brings W'x nearest to its signs; W has shape (d, b).

    W = U S V' leaves only V'R to choose, which has as many rows as W has rank: many bits on few
    directions cost no more than a thin singular value decomposition in each turn.
    """
    basis, lengths, start = np.linalg.svd(planes, full_matrices=False)
    basis = basis * lengths
    rotation, _ = learn_rotation(rows @ basis, start, max_turns)
    rotated: np.ndarray = basis @ rotation
    return rotated


def itq_planes(
    rows: np.ndarray, n_bits: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """ITQ's planes V (d, b) and offsets c (b,), scaled so that |V'x + c| is 1 in the mean.

    Where bits outnumber the directions in which the rows vary, ITQ's rotation is wide.
    """
    mean = rows.mean(axis=0)
    directions = leading_directions(rows - mean, n_bits)
    parts = (rows - mean) @ directions
    start = random_rotation(n_bits, rng)[: directions.shape[1]]
    rotation, _ = learn_rotation(parts, start)
    planes = directions @ rotation / np.abs(parts @ rotation).mean()
    return planes, -mean @ planes


def _loss(rotated: np.ndarray) -> float:
    """|B - V R|² / n with B = sign(V R), since |x - sign(x)| = ||x| - 1|."""
    return float(((np.abs(rotated) - 1.0) ** 2).sum() / len(rotated))
