"""CSQ, central similarity quantisation: every row is drawn to the hash centre of its class [1]_.

    logits f -> φ = tanh(α f),  p = (φ + 1)/2,  t in {0, 1} the centre of the row's class
    loss = mean over rows and bits of -(t log p + (1 - t) log(1 - p)) + λ log cosh(|φ| - 1)

.. [1] L. Yuan, T. Wang, X. Zhang, F. E. H. Tay, Z. Jie, W. Liu and J. Feng, "Central similarity
   quantization for efficient image and video retrieval", CVPR 2020; arXiv:1908.00347.
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


class CentralLoss(nn.Module):
    """Cross-entropy of the bits against the bits of the centre, and the cost of soft ones.

    p = (tanh z + 1)/2 is the logistic function of 2z, whose cross-entropy never overflows.
    """

    def __init__(self, targets: Targets, quantisation: float) -> None:
        super().__init__()
        self.targets, self.quantisation = targets, quantisation

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        aims = self.targets(batch).to(logits.dtype)
        slopes = batch.alpha * logits
        costs = functional.binary_cross_entropy_with_logits(
            2 * slopes, (aims + 1) / 2, reduction="none"
        )
        softness = torch.log(torch.cosh(torch.tanh(slopes).abs() - 1))
        each = (costs + self.quantisation * softness).mean(dim=1)
        return mean_of_rows(each, aims[:, 0] != 0, logits)


class CSQ(GradientHasher):
    """Codes drawn to hash centres that lie far apart (CSQ) [1]_.

    y is class labels, or multi-hot: rows with several tags aim at the majority of their centres.
    Parameters of its own; the others are those of `GradientParameters`.

    Parameters
    ----------
    quantisation : float
        λ, the weight of soft bits.
    centre_seed : int
        Seed of the centres; it is not `random_state`, so restarts and seeds share them.

    .. [1] L. Yuan et al., "Central similarity quantization for efficient image and video
       retrieval", CVPR 2020; arXiv:1908.00347.
    """

    _own: ClassVar[dict[str, Any]] = {"quantisation": 1e-4, "centre_seed": 0}
    _takes = ("classes", "tags")
    _recipes: ClassVar[dict[str | tuple[str, str], dict[str, Any]]] = {
        ("mlp", "posterior"): {"posterior": 0},
        "mlp": {"alpha": 2.0},
        "backbone": {"alpha": 2.0},
    }

    def _loss(self, supervision: Supervision) -> nn.Module:
        weight = _check.number("quantisation", self.quantisation)
        targets = Targets(n_classes(supervision), self._asked_bits(), self.centre_seed)
        return CentralLoss(targets, weight)
