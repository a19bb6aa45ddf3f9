"""HashNet: weighted likelihood of pairs, at codes that become binary while they are learned [1]_.

    φ = tanh(β f), β growing during the run: the continuation;  Θ_ij = slope φ_i · φ_j / b
    loss = sum over pairs of w (log(1 + e^Θ) - s Θ), divided by the sum of w
    w_ij = c_ij |S| / |S₁| for similar pairs, |S| / |S₀| for the others

S are the pairs of a batch, S₁ and S₀ its similar and dissimilar ones, so that either kind weighs
as much as the other however rare it is. c is the share of tags that two rows have in common,
|y_i ∩ y_j| / |y_i ∪ y_j|, if y is multi-hot and the pairs are within the batch; else 1.

β is the parameter α of training. It starts where tanh is smooth and ends where almost every |φ| is
1: what is trained at last are the binary codes.

What differs from the paper: β grows a little in every step instead of in stages that are each
trained to convergence; S is the batch, not the training set; Θ is divided by the number of bits.

.. [1] Z. Cao, M. Long, J. Wang and P. S. Yu, "HashNet: deep learning to hash by continuation",
   ICCV 2017; arXiv:1702.00758.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from rankbits.methods.deep.pairs import Pairs, find_pairs, pairwise_likelihood_loss
from rankbits.methods.parameters.fields import flag, number, parameter
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.batches import Batch
from rankbits.methods.training.estimator import GradientHasher
from rankbits.methods.training.recipes import RECIPES, Recipes

_END = 16.0  # of the continuation


def balancing_weights(pairs: Pairs) -> Tensor:
    """|S| / |S₁| for similar pairs, |S| / |S₀| for the others, 0 for a row with itself."""
    n, n_similar = pairs.mask.sum(), (pairs.mask * pairs.similar).sum()
    similar, others = n / n_similar.clamp(min=1), n / (n - n_similar).clamp(min=1)
    return pairs.mask * torch.where(pairs.similar > 0, similar, others)


def tag_overlap(tags: Tensor, others: Tensor, similar: Tensor) -> Tensor:
    """Tags that two rows share, over those that either has; 1 for pairs that share none."""
    shared = tags @ others.T
    either = tags.sum(1)[:, None] + others.sum(1) - shared
    return torch.where(similar > 0, shared / either.clamp(min=1), 1.0)


def _find_other_tags(batch: Batch) -> Tensor | None:
    """Tags of the rows that the queries are paired with, if these are the rows of the step."""
    if batch.gallery is None:
        return batch.tags
    is_of_step = batch.item_tags is not None and len(batch.item_tags) == len(batch.gallery)
    return batch.item_tags if is_of_step else None


class HashNetLoss(nn.Module):
    """Weighted pairwise likelihood of relaxed codes."""

    def __init__(self, slope: float, balance: bool) -> None:
        super().__init__()
        self.slope, self.balance = slope, balance

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        pairs = find_pairs(logits, batch)
        phi, others = torch.tanh(batch.query_alpha * logits), torch.tanh(batch.alpha * pairs.others)
        theta = phi @ others.T * (self.slope / phi.shape[1])
        weights = balancing_weights(pairs) if self.balance else pairs.mask
        other_tags = _find_other_tags(batch)
        if batch.tags is not None and other_tags is not None:
            tags = batch.tags.to(weights.dtype), other_tags.to(weights.dtype)
            weights = weights * tag_overlap(*tags, pairs.similar)
        return pairwise_likelihood_loss(theta, pairs.similar, weights)


class HashNet(GradientHasher):
    """Codes by weighted pairwise likelihood and continuation (HashNet) [1]_.

    y may be of any kind; all levels above 0 count alike.

    Parameters
    ----------
    slope : float, default=5.0
        Θ of two equal codes; that of two opposite ones is its negative.
    balance : bool, default=True
        Whether similar and dissimilar pairs have the same weight in total, however rare they are.

    References
    ----------
    .. [1] Z. Cao, M. Long, J. Wang and P. S. Yu, "HashNet: deep learning to hash by continuation",
       ICCV 2017; arXiv:1702.00758.
    """

    slope: float = parameter(5.0, number(closed=False))
    balance: bool = parameter(True, flag)

    _recipes: ClassVar[Recipes] = {
        **{key: {"alpha_end": _END} for key in RECIPES},
        "mlp": {"alpha": 1.0, "alpha_end": _END},
    }

    def _build_loss(self, supervision: Supervision) -> nn.Module:
        return HashNetLoss(self.slope, self.balance)
