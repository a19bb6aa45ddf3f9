"""Dispersion: penalties on codes that crowd together, for any loss to add.

A loss that only ranks may put a whole class on one code: nothing is left to tell its items apart.
Either penalty is 0 for codes that are spread out, and has a gradient.

Notation:
    φ  relaxed codes in [-1, 1], shape (M, b)    c_ij  cosine of φ_i and φ_j
    d_ij = b (1 - c_ij) / 2, at codes of ±1 the Hamming distance
"""

import torch
from torch import Tensor
from torch.nn import functional

from rankbits.methods.deep.pairs import mask_pairs, weighted_mean

KINDS = ("collisions", "correlation")
_LEAST_VARIANCE = 1e-6  # of a bit; below it a bit counts as constant


def dispersion_penalty(
    kind: str, phi: Tensor, gallery: Tensor | None = None, own: Tensor | None = None
) -> Tensor:
    """The penalty of that name; `gallery` and `own` are as for the objectives."""
    if kind == "correlation":
        return bit_correlation(phi)
    return soft_collisions(phi, gallery, own)


def soft_collisions(
    phi: Tensor, gallery: Tensor | None = None, own: Tensor | None = None
) -> Tensor:
    """Mean over pairs of max(0, 1 - d_ij): at codes of ±1, the share of pairs on one code.

    The cosine sees codes coincide long before they are hard: φ_i · φ_j alone would call any two
    soft codes distant. Pairs are those of a batch or, with a gallery (K, b), of its rows with
    those; `own` says which of them a row is, -1 for none. 0 without pairs.

    >>> round(float(soft_collisions(torch.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, -1.0]]))), 4)
    0.3333
    """
    codes = functional.normalize(phi, dim=1)
    others = codes if gallery is None else functional.normalize(gallery, dim=1)
    apart = phi.shape[1] * (1 - codes @ others.T) / 2
    return weighted_mean(torch.relu(1 - apart), mask_pairs(phi, gallery, own))


def bit_correlation(phi: Tensor) -> Tensor:
    """Mean over pairs of bits of their squared correlation in the batch; 0 for a single bit.

    A bit that does not vary has correlation 0 with all others.

    >>> float(bit_correlation(torch.tensor([[1.0, 1.0], [-1.0, -1.0]])))
    1.0
    """
    n_bits = phi.shape[1]
    centered = phi - phi.mean(0)
    covariance = centered.T @ centered / len(phi)
    variance = covariance.diagonal()
    squares = covariance**2 / torch.outer(variance, variance).clamp(min=_LEAST_VARIANCE**2)
    others = 1 - torch.eye(n_bits, dtype=phi.dtype, device=phi.device)
    return (squares * others).sum() / max(n_bits * (n_bits - 1), 1)
