"""DPN, deep polarised network: logits pushed past a margin on the side their target is on [1]_.

    loss = mean over rows and bits of max(m - f t, 0),  t in {-1, +1}^b the target of the row

A row whose loss is 0 has |f| >= m in every bit: its logits are polarised, and the sum of two such
losses bounds the Hamming distance of two rows of a class from above.

.. [1] L. Fan, K. W. Ng, C. Ju, T. Zhang and C. S. Chan, "Deep polarized network for supervised
   learning of accurate binary hashing codes", IJCAI 2020.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rankbits import _check
from rankbits.methods._deep.batches import Batch
from rankbits.methods._deep.centres import Targets, mean_of_rows, n_classes
from rankbits.methods._gradient import GradientHasher
from rankbits.methods._supervision import Supervision


class PolarisationLoss(nn.Module):
    """The hinge of each bit on the side of its target."""

    def __init__(self, targets: Targets, margin: float) -> None:
        super().__init__()
        self.targets, self.margin = targets, margin

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        aims = self.targets(batch).to(logits.dtype)
        each = torch.relu(self.margin - logits * aims).mean(dim=1)
        return mean_of_rows(each, aims[:, 0] != 0, logits)


class DPN(GradientHasher):
    """Codes whose logits are polarised towards the target of their class (DPN) [1]_.

    Targets are assigned once, by a seed, as hash centres that lie far apart. y is class labels, or
    multi-hot: rows with several tags aim at the majority of their targets.
    Parameters of its own; the others are those of `GradientParameters`.

    Parameters
    ----------
    margin : float
        m, how far a logit has to be on its side.
    centre_seed : int
        Seed of the targets; it is not `random_state`, so restarts and seeds share them.

    .. [1] L. Fan et al., "Deep polarized network for supervised learning of accurate binary hashing
       codes", IJCAI 2020.
    """

    _own: ClassVar[dict[str, Any]] = {"margin": 0.5, "centre_seed": 0}
    _takes = ("classes", "tags")
    _recipes: ClassVar[dict[str | tuple[str, str], dict[str, Any]]] = {
        ("mlp", "posterior"): {"posterior": 0},
    }

    def _loss(self, supervision: Supervision) -> nn.Module:
        margin = _check.number("margin", self.margin, closed=False)
        targets = Targets(n_classes(supervision), self._asked_bits(), self.centre_seed)
        return PolarisationLoss(targets, margin)
