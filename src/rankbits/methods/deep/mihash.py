"""MIHash: codes whose distances say as much as they can about what is relevant [1]_ [2]_.

    logits f -> φ = tanh(α f) -> soft tie histogram -> I(D; C) -> minus the mean over queries
    I(D; C) = H(D) - p(1) H(D | C = 1) - p(0) H(D | C = 0)

D is the distance of an item drawn from a query's list, C whether it is relevant (level > 0); p(C)
are the shares of the list. I is at most H(C), where no distance has both kinds of items; it does
not ask which of the two is nearer. Natural logarithms.

Where the bits read the rows themselves, a run can end with two classes in one code, from which the
loss has no way out. From 24 bits on a bin spans two bits, which differs from the paper.

.. [1] F. Cakir, K. He, S. A. Bargal and S. Sclaroff, "MIHash: online hashing with mutual
   information", ICCV 2017; arXiv:1703.08919.
.. [2] The same, "Hashing with mutual information", TPAMI 2019; arXiv:1803.00974.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rankbits import objectives
from rankbits.codes import MAX_BITS
from rankbits.methods.deep.soft_histograms import choose_n_bins, count_binary_ties, count_items
from rankbits.methods.parameters.fields import auto, integer, optional
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.batches import Batch
from rankbits.methods.training.estimator import GradientHasher
from rankbits.methods.training.recipes import Recipes

_LEAST = 1e-12  # of a probability whose logarithm is taken: an empty bin has a finite gradient


def mutual_information(counts: Tensor) -> Tensor:
    """I(D; C) of each query, in nats; NaN where all items are of one kind.

    Entropies of empty bins are 0.
    """
    n = count_items(counts)
    share = n / n.sum(1, keepdim=True).clamp(min=1)
    within = counts / n.clamp(min=1)[:, None, :]
    overall = (within * share[:, None, :]).sum(2)
    gained = _entropy(overall) - (share * _entropy(within)).sum(1)
    return torch.where((n > 0).all(1), gained, torch.nan)


def _entropy(p: Tensor) -> Tensor:
    return -(p * p.clamp(min=_LEAST).log()).sum(1)


class MIHashLoss(nn.Module):
    """Minus the mean of I(D; C) over the queries of a batch that have items of both kinds."""

    def __init__(self, n_bins: int | None) -> None:
        super().__init__()
        self.n_bins = n_bins

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        counts = count_binary_ties(torch.tanh(batch.query_alpha * logits), batch, self.n_bins)
        return -objectives.mean_over_queries(mutual_information(counts))


class MIHash(GradientHasher):
    """Codes whose distances carry the most information on relevance (MIHash) [1]_.

    y may be of any kind; all levels above 0 count alike.

    Parameters
    ----------
    n_bins : int or None, default="auto"
        Number of spacings between the bins of the soft histogram; None for one for each bit. The
        default is one for each bit, but from 24 bits on one for two bits.

    References
    ----------
    .. [1] F. Cakir, K. He, S. A. Bargal and S. Sclaroff, "Hashing with mutual information", TPAMI
       2019; arXiv:1803.00974.
    """

    n_bins: int | None = auto(optional(integer(1, MAX_BITS)))

    _recipes: ClassVar[Recipes] = {
        "mlp": {"alpha": 2.0, "learning_rate": 1e-2},
        ("mlp", "posterior"): {"learning_rate": 1e-3},
    }

    def _build_loss(self, supervision: Supervision) -> nn.Module:
        return MIHashLoss(choose_n_bins(self.n_bins, self.n_bits))

    def _loss_settings(self) -> dict[str, Any]:
        return {"n_bins": choose_n_bins(self.n_bins, self.n_bits)}
