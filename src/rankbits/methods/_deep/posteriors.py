"""The layer that turns rows into class posteriors: a few classifiers, averaged.

Notation: K members, C classes, d features.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits.methods._deep.layers import Dropout

FLOOR = -8.0  # of a log-probability: beyond it nothing is left to tell apart
_DROPOUT = 0.3


class Posterior(nn.Module):
    """Log-probabilities and probabilities of the classes, from the members' mean logits."""

    def __init__(self, n_features: int, n_classes: int, width: int, n_members: int) -> None:
        super().__init__()
        members = [_classifier(n_features, n_classes, width) for _ in range(n_members)]
        self.members = nn.ModuleList(members)

    def logits(self, rows: Tensor) -> Tensor:
        """Logits (n, K, C) of rows of norm sqrt(d)."""
        return torch.stack([member(rows) for member in self.members], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.logits(of_one_norm(x)).mean(1)
        return beliefs(logits)


def of_one_norm(x: Tensor) -> Tensor:
    """Rows scaled to norm sqrt(d): 1 a feature, in the mean of squares."""
    length: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return x * (math.sqrt(x.shape[1]) / length.clamp(min=1e-6))


def beliefs(logits: Tensor) -> Tensor:
    """Log-probabilities, at least FLOOR, and probabilities side by side: (n, 2 C)."""
    log = functional.log_softmax(logits, dim=1).clamp(min=FLOOR)
    return torch.cat([log, log.exp()], dim=1)


def _classifier(n_features: int, n_classes: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(n_features, width),
        nn.LayerNorm(width),
        nn.GELU(),
        Dropout(_DROPOUT),
        nn.Linear(width, n_classes),
    )
