"""GreedyHash: a classifier reads the signs themselves, and gradients pass straight through [1]_.

    logits f -> s = sgn f, +1 where f > 0 and else -1;  ds/df is taken to be 1
    loss = cross-entropy of the classifier W s + w at the row's class + λ mean |f - s|³

What differs from the paper: tags have a logistic classifier each; both parts have the same
optimizer and learning rate.

.. [1] S. Su, C. Zhang, K. Han and Y. Tian, "Greedy hash: towards fast optimization for accurate
   hash coding in CNN", NeurIPS 2018.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits.methods.deep.hash_centers import count_classes
from rankbits.methods.parameters.fields import number, parameter
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.batches import Batch, RowLoss
from rankbits.methods.training.estimator import GradientHasher
from rankbits.methods.training.recipes import Recipes

_SEED = 0x6EED


def straight_through(logits: Tensor) -> Tensor:
    """Signs, exactly ±1, with the gradient of the logits themselves."""
    signs = torch.where(logits > 0, 1.0, -1.0).to(logits.dtype)
    return signs + (logits - logits.detach())


class GreedyLoss(RowLoss):
    """Cross-entropy of a linear classifier of the signs, which is trained along, and the penalty.

    Tags have a classifier each: the mean of their logistic losses. The first weights come from a
    seed of its own, so that making a loss leaves the caller's generators alone.
    """

    def __init__(self, n_classes: int, n_bits: int, penalty: float) -> None:
        super().__init__()
        draws = torch.Generator().manual_seed(_SEED)
        weight = torch.randn(n_classes, n_bits, generator=draws) / n_bits**0.5
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(torch.zeros(n_classes))
        self.penalty = penalty

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        if batch.has_real_queries:
            return self._classify(self._score(torch.tanh(logits)), batch)
        signs = straight_through(logits)
        gaps = (logits - signs.detach()).abs() ** 3
        return self._classify(self._score(signs), batch) + self.penalty * gaps.mean()

    def _score(self, codes: Tensor) -> Tensor:
        return functional.linear(codes, self.weight.to(codes.dtype), self.bias.to(codes.dtype))

    def _classify(self, scores: Tensor, batch: Batch) -> Tensor:
        if batch.classes is not None:
            return functional.cross_entropy(scores, batch.classes)
        assert batch.tags is not None  # noqa: S101
        return functional.binary_cross_entropy_with_logits(scores, batch.tags.to(scores.dtype))


class GreedyHash(GradientHasher):
    """Codes whose signs a linear classifier can tell the classes from (GreedyHash) [1]_.

    y is class labels, or multi-hot, where every tag has a classifier of its own.

    Parameters
    ----------
    penalty : float, default=0.1
        Weight of |f - sgn f|³, the distance of the logits from their signs.

    References
    ----------
    .. [1] S. Su, C. Zhang, K. Han and Y. Tian, "Greedy hash: towards fast optimization for accurate
       hash coding in CNN", NeurIPS 2018.
    """

    penalty: float = parameter(0.1, number())

    _accepted_labels = ("classes", "tags")
    _recipes: ClassVar[Recipes] = {
        ("mlp", "posterior"): {"learning_rate": 5e-4},
        "mlp": {"learning_rate": 1e-2},
        "backbone": {"learning_rate": 1e-2},
    }

    def _build_loss(self, supervision: Supervision) -> nn.Module:
        return GreedyLoss(count_classes(supervision), self.n_bits, self.penalty)
