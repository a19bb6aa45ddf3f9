"""DTSH: codes that put each relevant item a margin nearer than each irrelevant one [1]_.

    Θ_ij = φ_i · φ_j / 2, so that Θ_qp - Θ_qn = D_qn - D_qp, distances D in bits
    loss = mean over triplets (q, p, n) of log(1 + e^(margin - Θ_qp + Θ_qn))
           + η times the mean over bits of (b - φ)²,  φ = tanh(α f), b = sign(φ)

p is relevant to the query q (level > 0), n is not. The mean is taken over the triplets of a query,
then over the queries that have any.

A batch of M rows has O(M³) triplets, but their terms depend on two distances only. With c the soft
counts of a query's items by distance, the sum over its triplets is read from the tie histogram:

    sum over d, e of c[d, relevant] c[e, irrelevant] log(1 + e^(margin + d - e))

in O(M² b + M b²) steps. It is the sum over triplets itself at codes of ±1. Between whole distances
it interpolates a convex function whose second derivative is at most 1/4, so that it lies above the
sum over triplets by at most 1/16 a triplet.

What differs from the paper: no triplet is formed; φ is bounded by tanh, where the paper has raw
outputs; the margin is a quarter of the bits instead of half of them, by validation.

.. [1] X. Wang, Y. Shi and K. M. Kitani, "Deep supervised hashing with triplet labels", ACCV 2016;
   arXiv:1612.03900.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits import objectives
from rankbits.methods.deep.pairs import quantization_error, select_bits
from rankbits.methods.deep.soft_histograms import (
    count_binary_ties,
    count_items,
    relax_gallery,
)
from rankbits.methods.parameters.fields import number, parameter
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.batches import Batch
from rankbits.methods.training.estimator import GradientHasher
from rankbits.methods.training.recipes import Recipes


def triplet_loss(counts: Tensor, margin: float) -> Tensor:
    """Mean over the triplets of each query, from counts (M, b + 1, 2); NaN where it has none."""
    d = torch.arange(counts.shape[1], dtype=counts.dtype, device=counts.device)
    each = functional.softplus(margin + d[:, None] - d)
    irrelevant, relevant = counts.unbind(2)
    total = ((relevant @ each) * irrelevant).sum(1)
    n: Tensor = count_items(counts).prod(1)
    return torch.where(n > 0, total / n.clamp(min=1), torch.nan)


class DTSHLoss(nn.Module):
    """Triplet likelihood and quantization error of relaxed codes."""

    def __init__(self, margin: float, eta: float) -> None:
        super().__init__()
        self.margin, self.eta = margin, eta

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        phi = torch.tanh(batch.query_alpha * logits)
        values = triplet_loss(count_binary_ties(phi, batch), self.margin * phi.shape[1])
        loss: Tensor = objectives.mean_over_queries(values)
        if self.eta == 0:
            return loss
        gallery = relax_gallery(batch)
        bits = phi if gallery is None else select_bits(phi, gallery, batch)
        return loss + self.eta * quantization_error(bits)


class DTSH(GradientHasher):
    """Codes by the likelihood of triplets (DTSH) [1]_.

    y may be of any kind; all levels above 0 count alike.

    Parameters
    ----------
    margin : float, default=0.25
        How much nearer the relevant item of a triplet should be, as a share of the bits.
    eta : float, default=0.0
        Weight of the quantization error. A growing slope of tanh does better without it.

    References
    ----------
    .. [1] X. Wang, Y. Shi and K. M. Kitani, "Deep supervised hashing with triplet labels", ACCV
       2016; arXiv:1612.03900.
    """

    margin: float = parameter(0.25, number())
    eta: float = parameter(0.0, number())

    _recipes: ClassVar[Recipes] = {"mlp": {"alpha": 1.0, "alpha_end": 16.0}}

    def _build_loss(self, supervision: Supervision) -> nn.Module:
        return DTSHLoss(self.margin, self.eta)
