"""DPSH: codes whose inner products tell by logistic regression which pairs are similar [1]_.

    u = tanh(α f) or α f,  Θ_ij = slope u_i · u_j / n_bits
    loss = mean over pairs of log(1 + e^Θ) - s Θ, plus η times the mean over bits of (b - u)²

The paper has u = f, Θ = u_i · u_j / 2, a slope of half the bits, and sums instead of means. Divided
by the number of bits, Θ of two equal codes is the same at any length: one slope serves them all.

Notation, here and wherever this module is imported:
    u  relaxed codes    s  1 for a similar pair (level > 0), else 0    b = sign(u)

.. [1] W.-J. Li, S. Wang and W.-C. Kang, "Feature learning based deep supervised hashing with
   pairwise labels", IJCAI 2016.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits import _check
from rankbits.methods._deep.batches import Batch
from rankbits.methods._deep.dispersion import counted
from rankbits.methods._gradient import GradientHasher
from rankbits.methods._supervision import Supervision


@dataclass(frozen=True)
class Pairs:
    """The pairs of a batch: its rows with each other, or with a gallery."""

    others: Tensor  # (K, n_bits) logits
    similar: Tensor  # (M, K) 1 where the level is above 0
    counted: Tensor  # (M, K) 1, but 0 for a row with itself


def pairs_of(logits: Tensor, batch: Batch) -> Pairs:
    """Who is paired with whom, who is similar, and which pairs count."""
    similar = (batch.levels != 0).to(logits.dtype)
    others = logits if batch.gallery is None else batch.gallery
    return Pairs(others, similar, counted(logits, batch.gallery, batch.own))


def pairwise_loss(theta: Tensor, similar: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean over pairs of log(1 + e^Θ) - s Θ, without overflow; 0 if no pair counts."""
    total = functional.binary_cross_entropy_with_logits(theta, similar, weights, reduction="sum")
    n: Tensor = weights.sum()
    return total / torch.where(n > 0, n, 1.0)


def quantisation(u: Tensor) -> Tensor:
    """Mean over bits of (b - u)², b = sign(u); it is 0 at codes of ±1."""
    return ((torch.where(u > 0, 1.0, -1.0) - u) ** 2).mean()


class DPSHLoss(nn.Module):
    """Pairwise likelihood and quantisation error."""

    def __init__(self, slope: float, eta: float, bounded: bool) -> None:
        super().__init__()
        self.slope, self.eta = (
            _check.number("slope", slope, closed=False),
            _check.number("eta", eta),
        )
        self.bounded = bool(bounded)

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        pairs = pairs_of(logits, batch)
        u, others = batch.alpha * logits, batch.alpha * pairs.others
        if self.bounded:
            u, others = torch.tanh(u), torch.tanh(others)
        theta = u @ others.T * (self.slope / u.shape[1])
        loss = pairwise_loss(theta, pairs.similar, pairs.counted)
        return loss + self.eta * quantisation(u)


class DPSH(GradientHasher):
    """Codes by the likelihood of pairs (DPSH) [1]_.

    Any y; levels above 0 count alike. Parameters of its own; the others are those of
    `GradientParameters`.

    Parameters
    ----------
    slope : float, default=2.5
        Θ of two equal codes of ±1; half the number of bits in the paper.
    eta : float, default=0.0
        Weight of the quantisation error; the growing slope of tanh does better without.
    bounded : bool, default=True
        Whether u is tanh(α f), or α f; the paper has f, for which give `alpha_end=None` and eta.

    .. [1] W.-J. Li, S. Wang and W.-C. Kang, "Feature learning based deep supervised hashing with
       pairwise labels", IJCAI 2016.
    """

    _own: ClassVar[dict[str, Any]] = {"slope": 2.5, "eta": 0.0, "bounded": True}
    _recipes: ClassVar[dict[str | tuple[str, str], dict[str, Any]]] = {
        "mlp": {"alpha": 1.0, "alpha_end": 16.0},
    }

    def _loss(self, supervision: Supervision) -> nn.Module:
        return DPSHLoss(self.slope, self.eta, self.bounded)
