"""CSQ, central similarity quantization: every row is drawn to the hash center of its class [1]_.

    logits f -> φ = tanh(α f),  p = (φ + 1)/2,  t in {0, 1} the center of the row's class
    loss = mean over rows and bits of -(t log p + (1 - t) log(1 - p)) + λ log cosh(|φ| - 1)

Any two centers of ten classes differ in exactly half of 32 or 48 bits (`hash_centers`); where
classes outnumber codes, they share them evenly. A row with several tags aims at the majority of
their centers; where these are split evenly, one random code, drawn from the seed, decides.

What differs from the paper: these centers instead of Bernoulli draws where the length is no power
of two; the signs of Hadamard rows are drawn, which keeps the distances and leaves no bit the same
for all classes; bits read the rows and α = 2, by validation.

.. [1] L. Yuan, T. Wang, X. Zhang, F. E. H. Tay, Z. Jie, W. Liu and J. Feng, "Central similarity
   quantization for efficient image and video retrieval", CVPR 2020; arXiv:1908.00347.
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


class CentralLoss(RowLoss):
    """Cross-entropy of the bits against the bits of the center, and the cost of soft ones.

    p = (tanh z + 1)/2 is the logistic function of 2z, whose cross-entropy never overflows.
    """

    def __init__(self, targets: HashTargets, quantization: float) -> None:
        super().__init__()
        self.targets, self.quantization = targets, quantization

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        aims = self.targets(batch).to(logits.dtype)
        slopes = batch.query_alpha * logits
        costs = functional.binary_cross_entropy_with_logits(
            2 * slopes, (aims + 1) / 2, reduction="none"
        )
        softness = torch.log(torch.cosh(torch.tanh(slopes).abs() - 1))
        weight = 0.0 if batch.has_real_queries else self.quantization
        each = (costs + weight * softness).mean(dim=1)
        return mean_over_rows(each, aims[:, 0] != 0, logits)


class CSQ(GradientHasher):
    """Codes drawn to hash centers that lie far apart (CSQ) [1]_.

    y is class labels, or multi-hot: a row with several tags aims at the majority of their centers.

    Parameters
    ----------
    quantization : float, default=0.0001
        Weight of the penalty on soft bits.
    center_seed : int, default=0
        Seed of the centers. It is not `random_state`, so that restarts and seeds share the centers.

    References
    ----------
    .. [1] L. Yuan et al., "Central similarity quantization for efficient image and video
       retrieval", CVPR 2020; arXiv:1908.00347.
    """

    quantization: float = parameter(1e-4, number())
    center_seed: int = parameter(0, integer(0))

    _accepted_labels = ("classes", "tags")
    _recipes: ClassVar[Recipes] = {
        ("mlp", "posterior"): {"posterior": 0},
        "mlp": {"alpha": 2.0},
        "backbone": {"alpha": 2.0},
    }

    def _build_loss(self, supervision: Supervision) -> nn.Module:
        targets = HashTargets(count_classes(supervision), self.n_bits, self.center_seed)
        return CentralLoss(targets, self.quantization)
