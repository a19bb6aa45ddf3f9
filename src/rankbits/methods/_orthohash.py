"""OrthoHash: one cross-entropy, of cosines to binary targets that are nearly orthogonal [1]_.

    logits f, targets o_c in {-1, +1}^b:  cos_c = f · o_c / (|f| sqrt(b))
    loss = -log softmax_c(s (cos_c - m [c is the row's class])) at the row's class

A cosine to ±1 targets is 1 - 2 d/b at ±1 codes, d the Hamming distance, so raising it lowers both
the distance to the own target and, as |f| is divided out, what signs lose of f.

.. [1] J. T. Hoe, K. W. Ng, T. Zhang, C. S. Chan, Y.-Z. Song and T. Xiang, "One loss for all: deep
   hashing with a single cosine similarity based learning objective", NeurIPS 2021;
   arXiv:2109.14449.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits import _check
from rankbits.methods._deep.batches import Batch
from rankbits.methods._deep.centres import Targets, mean_of_rows, n_classes
from rankbits.methods._gradient import GradientHasher
from rankbits.methods._supervision import Supervision


class CosineLoss(nn.Module):
    """Cross-entropy of the cosines, with a margin; a row's tags share its target equally."""

    def __init__(self, targets: Targets, margin: float, scale: float) -> None:
        super().__init__()
        self.targets, self.margin, self.scale = targets, margin, scale

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        centres = self.targets.centres.to(logits.dtype)
        mine = self._mine(batch).to(logits.dtype)
        scores = self.scale * (_cosines(logits, centres, batch.alpha) - self.margin * mine)
        n_mine = mine.sum(dim=1)
        share = mine / n_mine.clamp(min=1)[:, None]
        each = -(share * functional.log_softmax(scores, dim=1)).sum(dim=1)
        return mean_of_rows(each, n_mine > 0, logits)

    def _mine(self, batch: Batch) -> Tensor:
        """Which targets are a row's own, (M, C) of 0 and 1."""
        if batch.classes is not None:
            return functional.one_hot(batch.classes, len(self.targets.centres))
        assert batch.tags is not None  # noqa: S101
        return batch.tags


def _cosines(logits: Tensor, centres: Tensor, alpha: float) -> Tensor:
    """Cosines (M, C); of one bit, whose cosine is its sign and has no gradient, tanh(α f)."""
    if logits.shape[1] == 1:
        directions = torch.tanh(alpha * logits)
    else:
        directions = functional.normalize(logits, dim=1)
    cosines: Tensor = directions @ centres.T / logits.shape[1] ** 0.5
    return cosines


class OrthoHash(GradientHasher):
    """Codes by one cross-entropy of cosines to binary targets (OrthoHash) [1]_.

    y is class labels, or multi-hot: the tags of a row share its target equally.
    Parameters of its own; the others are those of `GradientParameters`.

    Parameters
    ----------
    margin, scale : float
        m, by how much the own cosine must lead, and s, the slope of the cross-entropy.
    centre_seed : int
        Seed of the targets; it is not `random_state`, so restarts and seeds share them.

    .. [1] J. T. Hoe et al., "One loss for all: deep hashing with a single cosine similarity based
       learning objective", NeurIPS 2021; arXiv:2109.14449.
    """

    _own: ClassVar[dict[str, Any]] = {"margin": 0.5, "scale": 4.0, "centre_seed": 0}
    _takes = ("classes", "tags")
    _recipes: ClassVar[dict[str | tuple[str, str], dict[str, Any]]] = {
        "mlp": {"learning_rate": 1e-2},
        "backbone": {"learning_rate": 1e-2},
    }

    def _loss(self, supervision: Supervision) -> nn.Module:
        margin, scale = (
            _check.number("margin", self.margin),
            _check.number("scale", self.scale, closed=False),
        )
        targets = Targets(n_classes(supervision), self._asked_bits(), self.centre_seed)
        return CosineLoss(targets, margin, scale)
