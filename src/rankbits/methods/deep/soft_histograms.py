"""Soft tie histograms of a batch, for the losses that read them."""

import torch
from torch import Tensor

from rankbits import objectives
from rankbits.methods.parameters.fields import is_auto
from rankbits.methods.training.batches import Batch

_HALF_FROM = 24  # bits


def choose_n_bins(n_bins: int | None, n_bits: int) -> int | None:
    """Spacings between bins: as given, or for "auto" one for two bits from 24 bits on.

    The published runs of TALR had so many; None stands for one for each bit.
    """
    if not is_auto(n_bins):
        return n_bins
    return n_bits // 2 if n_bits >= _HALF_FROM else None


def count_binary_ties(phi: Tensor, batch: Batch, n_bins: int | None = None) -> Tensor:
    """Soft counts (M, bins, 2) of irrelevant and relevant items; levels above 0 are one."""
    relevant = (batch.levels != 0).to(torch.uint8).contiguous()
    gallery = relax_gallery(batch)
    counts = objectives.soft_ties(phi, relevant, n_bins, gallery=gallery, own=batch.own)
    if counts.shape[2] == 1:  # nothing is relevant to anything
        counts = torch.cat([counts, torch.zeros_like(counts)], dim=2)
    return counts


def relax_gallery(batch: Batch) -> Tensor | None:
    """Relaxed codes of the gallery, if there is one."""
    return None if batch.gallery is None else torch.tanh(batch.alpha * batch.gallery)


def count_items(counts: Tensor) -> Tensor:
    """How many items of each kind a query's list has, (M, 2): whole numbers without gradient."""
    return counts.detach().sum(1).round()
