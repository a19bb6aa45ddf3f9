"""DPN, deep polarized network: logits pushed past a margin on the side their target is on [1]_.

    loss = mean over rows and bits of max(m - f t, 0),  t in {-1, +1}^b the target of the row

A row whose loss is 0 has |f| >= m in every bit: its logits are polarized, and the sum of two such
losses bounds the Hamming distance of two rows of a class from above.

What differs from the paper: targets are the hash centers of `csq`, which are at least as far apart
as is proved there, instead of Bernoulli draws, and they do not move during training.

.. [1] L. Fan, K. W. Ng, C. Ju, T. Zhang and C. S. Chan, "Deep polarized network for supervised
   learning of accurate binary hashing codes", IJCAI 2020.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from rankbits.methods.deep.hash_centers import HashTargets, count_classes, mean_over_rows
from rankbits.methods.parameters.fields import integer, number, parameter
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.batches import Batch, RowLoss
from rankbits.methods.training.estimator import GradientHasher
from rankbits.methods.training.recipes import Recipes


class PolarizationLoss(RowLoss):
    """The hinge of each bit on the side of its target."""

    def __init__(self, targets: HashTargets, margin: float) -> None:
        super().__init__()
        self.targets, self.margin = targets, margin

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        aims = self.targets(batch).to(logits.dtype)
        each = torch.relu(self.margin - logits * aims).mean(dim=1)
        return mean_over_rows(each, aims[:, 0] != 0, logits)


class DPN(GradientHasher):
    """Codes whose logits are polarized towards the target of their class (DPN) [1]_.

    Targets are assigned once, by a seed, as hash centers that lie far apart. y is class labels, or
    multi-hot: a row with several tags aims at the majority of their targets.

    Parameters
    ----------
    margin : float, default=0.5
        How far a logit must lie on the side of its target.
    center_seed : int, default=0
        Seed of the targets. It is not `random_state`, so that restarts and seeds share the targets.

    References
    ----------
    .. [1] L. Fan et al., "Deep polarized network for supervised learning of accurate binary hashing
       codes", IJCAI 2020.
    """

    margin: float = parameter(0.5, number(closed=False))
    center_seed: int = parameter(0, integer(0))

    _accepted_labels = ("classes", "tags")
    _recipes: ClassVar[Recipes] = {("mlp", "posterior"): {"posterior": 0}}

    def _build_loss(self, supervision: Supervision) -> nn.Module:
        targets = HashTargets(count_classes(supervision), self.n_bits, self.center_seed)
        return PolarizationLoss(targets, self.margin)
