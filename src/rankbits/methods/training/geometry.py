"""Bits that keep the geometry of the rows, for classes that training has not seen.

Bits that are trained by labels tell the classes of these labels apart, and little else: rows of a
new class scatter over them. Where classes are to come, most of the bits are therefore not trained
by labels, but are signs of directions that all rows share:

    z = R' D' W (x - mean),  W = S^(-1/2)

with x scaled to one norm, S the covariance of the rows within their classes, D the principal
directions of the rows so whitened, and R the rotation of ITQ. All that is taken from the labels is
S: the directions in which rows of one class differ count less, which holds for new classes too.

A real-valued query weighs the two kinds of bits. The class bits count by the confidence of the
class posterior p in the query, sum of p²: it is near 1 where the query has a known class and small
where it has none of them. The weight of a bit of geometry was chosen on classes held out of the
training classes of CIFAR-100.

Notation: d features, g bits of geometry, b bits in all.
"""

import torch
from torch import Tensor, nn

from rankbits.methods.training.layers import Standardize, scale_to_one_norm

QUERY_WEIGHT = 0.25  # of a bit of geometry in a real-valued query; a sure class bit has 1


class Geometry(nn.Module):
    """The map to the bits of geometry, and how a query weighs them."""

    mean: Tensor
    planes: Tensor
    weight: Tensor
    gate: Tensor

    def __init__(self, n_features: int, n_bits: int) -> None:
        super().__init__()
        self.standardize = Standardize(n_features)
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("planes", torch.zeros(n_features, n_bits))
        self.register_buffer("weight", torch.ones(()))  # of these bits
        self.register_buffer("gate", torch.zeros(()))  # 1 if confidence weighs the class bits

    def forward(self, x: Tensor) -> Tensor:
        rows = scale_to_one_norm(self.standardize(x.float()))
        logits: Tensor = (rows - self.mean) @ self.planes
        return logits

    def extend(self, x: Tensor, class_logits: Tensor, confidence: Tensor) -> Tensor:
        """Logits (n, b) of rows: those of the class bits, then those of geometry."""
        weighed = torch.lerp(class_logits, confidence * torch.tanh(class_logits), self.gate)
        return torch.cat([weighed, self.weight * self(x)], dim=1)

    def weigh_queries(self) -> None:
        """Become the map of real-valued queries."""
        self.weight.fill_(QUERY_WEIGHT)
        self.gate.fill_(1.0)


def measure_confidence(beliefs: Tensor) -> Tensor:
    """The sum of p² of each row (n, 1), from the log-probabilities and probabilities (n, 2 C)."""
    probabilities = beliefs[:, beliefs.shape[1] // 2 :]
    return (probabilities**2).sum(1, keepdim=True)
