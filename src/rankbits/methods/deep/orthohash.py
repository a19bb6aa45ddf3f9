"""OrthoHash: one cross-entropy, of cosines to binary targets that are nearly orthogonal [1]_.

    logits f, targets o_c in {-1, +1}^b:  cos_c = f · o_c / (|f| sqrt(b))
    loss = -log softmax_c(s (cos_c - m [c is the row's class])) at the row's class

A cosine to ±1 targets is 1 - 2 d/b at ±1 codes, d the Hamming distance, so raising it lowers both
the distance to the own target and, as |f| is divided out, what signs lose of f.

What differs from the paper: the logits are not normalized over the batch; at one bit, where the
cosine is the sign and has no gradient, tanh(α f) stands for it; tags share the target equally, and
the margin is taken from each of them.

.. [1] J. T. Hoe, K. W. Ng, T. Zhang, C. S. Chan, Y.-Z. Song and T. Xiang, "One loss for all: deep
   hashing with a single cosine similarity based learning objective", NeurIPS 2021;
   arXiv:2109.14449.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits.methods.deep.hash_centers import HashTargets, count_classes, mean_over_rows
from rankbits.methods.parameters.fields import integer, number, parameter
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.batches import Batch, RowLoss
from rankbits.methods.training.estimator import GradientHasher
from rankbits.methods.training.recipes import Recipes


class CosineLoss(RowLoss):
    """Cross-entropy of the cosines, with a margin; a row's tags share its target equally."""

    def __init__(self, targets: HashTargets, margin: float, scale: float) -> None:
        super().__init__()
        self.targets, self.margin, self.scale = targets, margin, scale

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        centers = self.targets.centers.to(logits.dtype)
        is_own = self._find_own_targets(batch).to(logits.dtype)
        scores = self.scale * (_cosines(logits, centers, batch.query_alpha) - self.margin * is_own)
        n_own = is_own.sum(dim=1)
        share = is_own / n_own.clamp(min=1)[:, None]
        each = -(share * functional.log_softmax(scores, dim=1)).sum(dim=1)
        return mean_over_rows(each, n_own > 0, logits)

    def _find_own_targets(self, batch: Batch) -> Tensor:
        """Which targets are a row's own, (M, C) of 0 and 1."""
        if batch.classes is not None:
            return functional.one_hot(batch.classes, len(self.targets.centers))
        assert batch.tags is not None  # noqa: S101
        return batch.tags


def _cosines(logits: Tensor, centers: Tensor, alpha: float) -> Tensor:
    """Cosines (M, C); of one bit, whose cosine is its sign and has no gradient, tanh(α f)."""
    if logits.shape[1] == 1:
        directions = torch.tanh(alpha * logits)
    else:
        directions = functional.normalize(logits, dim=1)
    cosines: Tensor = directions @ centers.T / logits.shape[1] ** 0.5
    return cosines


class OrthoHash(GradientHasher):
    """Codes by one cross-entropy of cosines to binary targets (OrthoHash) [1]_.

    y is class labels, or multi-hot: the tags of a row share its target equally.

    Parameters
    ----------
    margin : float, default=0.5
        How much larger the cosine to the own target must be.
    scale : float, default=4.0
        Slope of the cross-entropy.
    center_seed : int, default=0
        Seed of the targets. It is not `random_state`, so that restarts and seeds share the targets.

    References
    ----------
    .. [1] J. T. Hoe et al., "One loss for all: deep hashing with a single cosine similarity based
       learning objective", NeurIPS 2021; arXiv:2109.14449.
    """

    margin: float = parameter(0.5, number())
    scale: float = parameter(4.0, number(closed=False))
    center_seed: int = parameter(0, integer(0))

    _accepted_labels = ("classes", "tags")
    _recipes: ClassVar[Recipes] = {
        "mlp": {"learning_rate": 1e-2},
        "backbone": {"learning_rate": 1e-2},
    }

    def _build_loss(self, supervision: Supervision) -> nn.Module:
        targets = HashTargets(count_classes(supervision), self.n_bits, self.center_seed)
        return CosineLoss(targets, self.margin, self.scale)
