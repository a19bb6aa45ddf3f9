"""DPSH: codes whose inner products tell by logistic regression which pairs are similar [1]_.

    u = tanh(α f) or α f,  Θ_ij = slope u_i · u_j / n_bits
    loss = mean over pairs of log(1 + e^Θ) - s Θ, plus η times the mean over bits of (b - u)²

The paper has u = f, Θ = u_i · u_j / 2, a slope of half the bits, and sums instead of means. Divided
by the number of bits, Θ of two equal codes is the same at any length: one slope serves them all.

Notation:
    u  relaxed codes    s  1 for a similar pair (level > 0), else 0    b = sign(u)

.. [1] W.-J. Li, S. Wang and W.-C. Kang, "Feature learning based deep supervised hashing with
   pairwise labels", IJCAI 2016.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from rankbits.methods.deep.pairs import (
    find_pairs,
    pairwise_likelihood_loss,
    quantization_error,
    select_bits,
)
from rankbits.methods.parameters.fields import flag, number, parameter
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.batches import Batch
from rankbits.methods.training.estimator import GradientHasher
from rankbits.methods.training.recipes import Recipes


class DPSHLoss(nn.Module):
    """Pairwise likelihood and quantization error."""

    def __init__(self, slope: float, eta: float, bounded: bool) -> None:
        super().__init__()
        self.slope, self.eta, self.bounded = slope, eta, bounded

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        pairs = find_pairs(logits, batch)
        u, others = batch.query_alpha * logits, batch.alpha * pairs.others
        if self.bounded:
            u, others = torch.tanh(u), torch.tanh(others)
        theta = u @ others.T * (self.slope / u.shape[1])
        loss = pairwise_likelihood_loss(theta, pairs.similar, pairs.mask)
        return loss + self.eta * quantization_error(select_bits(u, others, batch))


class DPSH(GradientHasher):
    """Codes by the likelihood of pairs (DPSH) [1]_.

    y may be of any kind; all levels above 0 count alike.

    Parameters
    ----------
    slope : float, default=2.5
        Θ of two equal codes of ±1; half the number of bits in the paper.
    eta : float, default=0.0
        Weight of the quantization error. A growing slope of tanh does better without it.
    bounded : bool, default=True
        Whether the relaxed code is tanh(alpha * logit), or alpha * logit. The paper has the logit
        itself; for it, set `alpha=1.0`, `alpha_end=None` and `eta` too.

    References
    ----------
    .. [1] W.-J. Li, S. Wang and W.-C. Kang, "Feature learning based deep supervised hashing with
       pairwise labels", IJCAI 2016.
    """

    slope: float = parameter(2.5, number(closed=False))
    eta: float = parameter(0.0, number())
    bounded: bool = parameter(True, flag)

    _recipes: ClassVar[Recipes] = {"mlp": {"alpha": 1.0, "alpha_end": 16.0}}

    def _build_loss(self, supervision: Supervision) -> nn.Module:
        return DPSHLoss(self.slope, self.eta, self.bounded)
