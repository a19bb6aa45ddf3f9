"""The pairs of a batch, for the losses and penalties that add up over pairs.

The pairs are the rows of a batch with each other or, with a gallery, with its rows. The pair of a
row with itself never counts.

Notation: u  relaxed codes, s  1 for a similar pair (level > 0), else 0
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from rankbits.methods.training.batches import Batch


@dataclass(frozen=True)
class Pairs:
    """The pairs of a batch of M rows with K others."""

    others: Tensor  # (K, n_bits) logits
    similar: Tensor  # (M, K) 1 where the level is above 0
    mask: Tensor  # (M, K) 1, but 0 for a row with itself


def find_pairs(logits: Tensor, batch: Batch) -> Pairs:
    """Who is paired with whom, who is similar, and which pairs count."""
    similar = (batch.levels != 0).to(logits.dtype)
    others = logits if batch.gallery is None else batch.gallery
    return Pairs(others, similar, mask_pairs(logits, batch.gallery, batch.own))


def mask_pairs(rows: Tensor, gallery: Tensor | None, own: Tensor | None) -> Tensor:
    """Which pairs count, (M, K) of 0 and 1: all but a row with itself.

    `own` says which row of the gallery each row is, -1 for none.
    """
    n_others = len(rows) if gallery is None else len(gallery)
    mask = torch.ones(len(rows), n_others, dtype=rows.dtype, device=rows.device)
    if gallery is None:
        return mask.fill_diagonal_(0)
    if own is not None:
        present = torch.nonzero(own >= 0)[:, 0]
        mask[present, own[present]] = 0
    return mask


def select_bits(u: Tensor, others: Tensor, batch: Batch) -> Tensor:
    """The relaxed codes of a step that are to become bits.

    These are the codes of the rows and, if they are encoded in this step too, those of the others;
    queries that stay real-valued are not among them.
    """
    if not batch.trains_gallery:
        return u
    return others if batch.has_real_queries else torch.cat([u, others])


def weighted_mean(values: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean; 0, with a gradient path, if all weights are 0."""
    mean: Tensor = (values * weights).sum() / weights.sum().clamp(min=1)
    return mean


def pairwise_likelihood_loss(theta: Tensor, similar: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean over pairs of log(1 + e^Θ) - s Θ, without overflow; 0 if no pair counts."""
    total = functional.binary_cross_entropy_with_logits(theta, similar, weights, reduction="sum")
    n: Tensor = weights.sum()
    return total / torch.where(n > 0, n, 1.0)


def quantization_error(u: Tensor) -> Tensor:
    """Mean over bits of (sign(u) - u)²; it is 0 at codes of ±1."""
    return ((torch.where(u > 0, 1.0, -1.0) - u) ** 2).mean()
