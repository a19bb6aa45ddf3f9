"""Hash centers: one code a class, far from each other, for the methods that aim at them.

Two constructions, of which the one with the larger least distance is taken:
    blocks   b cut into powers of two, 24 = 16 + 8; in a block of size s, up to 2s classes get rows
             of ± Sylvester's Hadamard matrix, whose distances are s/2 (s for a row and its
             negative), and the bits of more classes are drawn
    greedy   codes drawn at random, each kept if it is at least d from those before it; d begins
             at what no set of n codes exceeds, and falls when draws fail
At b a power of two and n <= b every pair is exactly b/2 apart (Yuan et al., CVPR 2020). A seed
gives the same centers everywhere: nothing else is read.

Notation:
    n  classes    b  bits    d  Hamming distance    V(b, r)  codes within distance r of a code
"""

import math

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.methods.supervision import Supervision
from rankbits.methods.training.batches import Batch

_DRAWS = 64  # in a row without success, and greedy lowers d
_MOST_RAISED = 1024  # classes; with more, greedy begins at the proved distance


def build_centers(n: int, n_bits: int, seed: int = 0) -> np.ndarray:
    """Centers (n, b) of ±1, int8.

    Any two differ in `least_distance` to `most_distance` bits. Where n exceeds half of the 2^b
    codes, all of them are dealt out, as often as each other where even they are too few.

    >>> build_centers(3, 4, seed=0) @ build_centers(3, 4, seed=0).T
    array([[4, 0, 0],
           [0, 4, 0],
           [0, 0, 4]], dtype=int8)
    """
    rng = np.random.default_rng([seed, n, n_bits])
    if _fills(n, n_bits):
        codes = rng.permutation(1 << n_bits)[np.arange(n) % (1 << n_bits)]
        centers = 1 - 2 * (codes[:, None] >> np.arange(n_bits) & 1)
    else:
        centers = _join_blocks(n, n_bits, rng)
        if smallest_distance(centers) < min(n_bits // 2, most_distance(n, n_bits)):
            centers = max(centers, _draw_greedily(n, n_bits, rng), key=smallest_distance)
    return centers.astype(np.int8)


def least_distance(n: int, n_bits: int) -> int:
    """What any two of n centers are proved to differ in: the better of two bounds.

    Blocks: the sum of s/2 over the blocks of size s >= n/2. Greedy: the largest d with
    2 (n - 1) V(b, d - 1) <= 2^b, where a draw is kept with probability 1/2 at least.
    0 where there are fewer codes than classes.

    >>> [least_distance(10, b) for b in (4, 12, 32, 48)]
    [1, 4, 16, 24]
    """
    if _fills(n, n_bits):
        return int(n <= 1 << n_bits)
    blocks = sum(size // 2 for size in _sizes(n_bits) if n <= 2 * size)
    return max(blocks, _greedy_distance(n, n_bits))


def most_distance(n: int, n_bits: int) -> int:
    """What the nearest two of n codes can differ in at most (Plotkin).

    A bit tells at most floor(n²/4) of the n(n - 1)/2 pairs apart. b for a single code.

    >>> [most_distance(n, 32) for n in (2, 3, 10)]
    [32, 21, 17]
    """
    return n_bits if n < 2 else 2 * n_bits * (n * n // 4) // (n * (n - 1))


def smallest_distance(codes: np.ndarray) -> int:
    """Distance of the nearest two of the ±1 codes (n, b); b for a single code."""
    n, n_bits = codes.shape
    least: int = n_bits
    wide = codes.astype(np.float32)
    for row in range(n - 1):
        least = min(least, int((n_bits - (wide[row + 1 :] @ wide[row]).max()) / 2))
    return least


def hadamard(size: int) -> np.ndarray:
    """Sylvester's matrix of ±1, int8, whose rows are orthogonal; the size is a power of two."""
    matrix = np.ones((1, 1), np.int8)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def _fills(n: int, n_bits: int) -> bool:
    """Whether so many centers leave greedy less than half of the codes to draw from."""
    return n_bits < 63 and 2 * (n - 1) > 1 << n_bits


def _sizes(n_bits: int) -> list[int]:
    return [1 << k for k in range(n_bits.bit_length()) if n_bits >> k & 1]


def _join_blocks(n: int, n_bits: int, rng: np.random.Generator) -> np.ndarray:
    """Codes of Hadamard rows side by side, a row and its negative only where rows are too few."""
    parts = []
    for size in reversed(_sizes(n_bits)):
        if n > 2 * size:
            parts.append(_draw_codes(n, size, rng))
            continue
        matrix = hadamard(size)
        if n > size:
            parts.append(rng.permutation(np.concatenate([matrix, -matrix]))[:n])
        else:  # signs keep the distances, and no bit is the same in every row
            parts.append(rng.permutation(matrix)[:n] * _draw_codes(n, 1, rng))
    return np.concatenate(parts, axis=1)


def _draw_greedily(n: int, n_bits: int, rng: np.random.Generator) -> np.ndarray:
    least = _greedy_distance(n, n_bits)
    first = most_distance(n, n_bits) if n <= _MOST_RAISED else least
    for distance in range(first, least, -1):
        centers = _draw_apart(n, n_bits, distance, rng, gives_up=True)
        if len(centers) == n:
            return centers
    return _draw_apart(n, n_bits, least, rng, gives_up=False)


def _draw_apart(
    n: int, n_bits: int, distance: int, rng: np.random.Generator, *, gives_up: bool
) -> np.ndarray:
    """Codes drawn one by one, at least the distance apart; fewer than n if it gives up."""
    centers = np.empty((n, n_bits), np.float32)
    centers[0], size, n_drawn = _draw_codes(1, n_bits, rng)[0], 1, _DRAWS if gives_up else 4
    while size < n:
        draws = _draw_codes(n_drawn, n_bits, rng).astype(np.float32)
        nearest = (n_bits - (draws @ centers[:size].T).max(axis=1)) / 2
        far_enough = np.flatnonzero(nearest >= distance)
        if len(far_enough):
            centers[size], size = draws[far_enough[0]], size + 1
        elif gives_up:
            break
    return centers[:size]


def _greedy_distance(n: int, n_bits: int) -> int:
    """The largest d with 2 (n - 1) V(b, d - 1) <= 2^b; b for a single code."""
    volume, distance = 0, 0
    while distance < n_bits:
        volume += math.comb(n_bits, distance)  # V(b, distance)
        if 2 * (n - 1) * volume > 1 << n_bits:
            break
        distance += 1
    return distance


def _draw_codes(n: int, n_bits: int, rng: np.random.Generator) -> np.ndarray:
    codes: np.ndarray = 1 - 2 * rng.integers(0, 2, (n, n_bits), np.int8)
    return codes


class HashTargets(nn.Module):
    """The code at which each row of a batch aims: the center of its class, or of its tags.

    That of several tags is, bit by bit, the majority of their centers; a draw of the seed decides
    where they are split evenly (Yuan et al., CVPR 2020). A row without tags aims at
    nothing: its target is 0. The centers are buffers, so a checkpoint has them.
    """

    centers: Tensor
    ties: Tensor

    def __init__(self, n: int, n_bits: int, seed: int) -> None:
        super().__init__()
        centers = build_centers(n, n_bits, seed)
        rng = np.random.default_rng([seed, n, n_bits, 1])
        self.register_buffer("centers", torch.tensor(centers, dtype=torch.float32))
        self.register_buffer("ties", torch.from_numpy(_draw_codes(1, n_bits, rng)[0]).float())

    def forward(self, batch: Batch) -> Tensor:
        if batch.classes is not None:
            return self.centers[batch.classes]
        assert batch.tags is not None  # noqa: S101
        tags = batch.tags.to(self.centers.dtype)
        votes = torch.sign(tags @ self.centers)
        known = torch.where(votes == 0, self.ties, votes)
        return known * (tags.sum(dim=1, keepdim=True) > 0)


def mean_over_rows(values: Tensor, counts: Tensor, logits: Tensor) -> Tensor:
    """Mean of the values (M,) of the rows that count; 0 where none does, with a path back."""
    counted = values[counts]
    return counted.mean() if len(counted) else 0 * logits.sum()


def count_classes(supervision: Supervision) -> int:
    """Classes of the labels, or tags."""
    if supervision.classes is not None:
        return int(supervision.classes.max()) + 1
    assert supervision.tags is not None  # noqa: S101
    return int(supervision.tags.shape[1])
