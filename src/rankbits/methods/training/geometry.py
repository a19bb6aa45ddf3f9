"""Bits that keep the geometry of the rows, for classes that training has not seen.

Bits that are trained by labels tell the classes of these labels apart, and little else: rows of a
new class scatter over them. Where classes are to come, most of the bits are therefore not trained
by a loss, but are signs of directions of a space in which rows resemble each other:

    u = M' (x - mean) / |M' (x - mean)|    z = R' D' ([u, sqrt(w) p] - center)

with x scaled to one norm, M the metric that `growing` learns, p the class posterior, D the
principal directions of [u, sqrt(w) p], and R the rotation of ITQ. The inner product of two such
rows is their cosine in that metric plus w p.p: known classes are told apart by the second term, and
rows of new classes by the first. An encoder without a posterior has u alone.

A real-valued query weighs the two kinds of bits. The trained bits count by the confidence of the
class posterior in the query, sum of p²: it is near 1 where the query has a known class and small
where it has none of them. The weights were chosen on classes held out of the training classes of
CIFAR-100.

Notation: d features, C classes of the posterior, 0 without one, g bits of geometry, b bits in all.
"""

import math

import torch
from torch import Tensor, nn

from rankbits.methods.training.layers import Standardize, scale_to_one_norm

POSTERIOR_WEIGHT = 0.1  # w, of p.p beside a cosine
QUERY_WEIGHT = 0.5  # of a bit of geometry in a real-valued query; a sure class bit has 1


class Metric(nn.Module):
    """Rows of length 1 whose cosines say how alike the rows are."""

    mean: Tensor
    directions: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.standardize = Standardize(n_features)
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("directions", torch.zeros(n_features, n_features))  # M

    def forward(self, x: Tensor) -> Tensor:
        rows = scale_to_one_norm(self.standardize(x.float()))
        units: Tensor = scale_to_one_norm((rows - self.mean) @ self.directions)
        return units / math.sqrt(units.shape[1])


class Geometry(nn.Module):
    """The map to the bits of geometry, and how a query weighs them."""

    center: Tensor
    planes: Tensor
    weight: Tensor
    gate: Tensor

    def __init__(self, n_features: int, n_classes: int, n_bits: int) -> None:
        super().__init__()
        self.metric = Metric(n_features)
        self.register_buffer("center", torch.zeros(n_features + n_classes))
        self.register_buffer("planes", torch.zeros(n_features + n_classes, n_bits))
        self.register_buffer("weight", torch.ones(()))  # of these bits
        self.register_buffer("gate", torch.zeros(()))  # 1 if confidence weighs the class bits

    def forward(self, x: Tensor, probabilities: Tensor) -> Tensor:
        features = join_features(self.metric(x), probabilities)
        logits: Tensor = (features - self.center) @ self.planes
        return logits

    def extend(self, x: Tensor, class_logits: Tensor, probabilities: Tensor) -> Tensor:
        """Logits (n, b) of rows: those of the class bits, then those of geometry."""
        confidence = measure_confidence(probabilities)
        weighed = torch.lerp(class_logits, confidence * torch.tanh(class_logits), self.gate)
        return torch.cat([weighed, self.weight * self(x, probabilities)], dim=1)

    def weigh_queries(self) -> None:
        """Become the map of real-valued queries."""
        self.weight.fill_(QUERY_WEIGHT)
        self.gate.fill_(1.0)


def join_features(units: Tensor, probabilities: Tensor) -> Tensor:
    """[u, sqrt(w) p]: inner products are cosines plus w p.p."""
    return torch.cat([units, math.sqrt(POSTERIOR_WEIGHT) * probabilities], dim=1)


def measure_confidence(probabilities: Tensor) -> Tensor:
    """The sum of p² of each row (n, 1); 1 where there is no posterior."""
    total = (probabilities**2).sum(1, keepdim=True)
    return total if probabilities.shape[1] else total + 1  # an empty sum is 0
