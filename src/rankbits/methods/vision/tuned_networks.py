"""Networks tuned to classes: the first blocks of a backbone once, and K copies of its last ones.

    rows -> first blocks -> last blocks of network k -> scales -> classifier of network k

Their output is the logits of all networks side by side, (n, K C), and takes the place of a
backbone's features: the head reads their mean as a class posterior.

Notation: K networks, C classes.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from rankbits.errors import InputError
from rankbits.methods.training.kinds import Architecture
from rankbits.methods.training.layers import Dropout, Standardize
from rankbits.methods.training.parameters import count_last_blocks
from rankbits.methods.vision.backbones import (
    N_FEATURES,
    keep_statistics,
    load_backbone,
    split_backbone,
)

_DROPOUT = 0.2


class TunedNetwork(nn.Module):
    """The last blocks of a backbone, or all of it, and a classifier of the features: (n, C)."""

    def __init__(
        self, backbone: nn.Module, n_features: int, n_classes: int, keeps_statistics: bool = True
    ) -> None:
        super().__init__()
        self.backbone, self.keeps_statistics = backbone, keeps_statistics
        self.scales = Standardize(n_features)
        self.dropout = Dropout(_DROPOUT)
        self.output = nn.Linear(n_features, n_classes)
        nn.init.zeros_(self.output.weight)

    def train(self, mode: bool = True) -> "TunedNetwork":
        super().train(mode)
        if self.keeps_statistics:
            keep_statistics(self.backbone)
        return self

    def forward(self, x: Tensor) -> Tensor:
        features = self.scales(self.backbone(x).float())
        logits: Tensor = self.output(self.dropout(features))
        return logits


class NetworkLogits(nn.Module):
    """The logits of one network among those of several, side by side."""

    def __init__(self, number: int, n_classes: int) -> None:
        super().__init__()
        self.start, self.end = number * n_classes, (number + 1) * n_classes

    def forward(self, x: Tensor) -> Tensor:
        return x[:, self.start : self.end]


class TunedNetworks(nn.Module):
    """Logits (n, K C) of rows, by networks that share the first blocks."""

    def __init__(self, first: nn.Module, networks: Sequence[TunedNetwork]) -> None:
        super().__init__()
        self.first, self.networks = first, nn.ModuleList(networks)

    @property
    def no_logits(self) -> Tensor:
        """Logits of no rows, (0, K C), which tell what the next layer gets."""
        outputs = [cast(TunedNetwork, network).output for network in self.networks]
        return torch.empty(0, sum(output.out_features for output in outputs))

    def forward(self, x: Tensor) -> Tensor:
        maps = self.first(x)
        return torch.cat([network(maps) for network in self.networks], dim=1)


def cut_backbone(backbone: nn.Module, fine_tune: bool | str) -> tuple[nn.Module, nn.Module]:
    """The part of a backbone that stays as it is, and the part that is tuned."""
    n_last = count_last_blocks(fine_tune)
    return (nn.Identity(), backbone) if n_last is None else split_backbone(backbone, n_last)


def rebuild_backbone(a: Architecture, weights: Mapping[str, Tensor]) -> nn.Module:
    """What stands before the head of an encoder, with any weights.

    Networks that do not have all of their weights, by the names of the encoder, are not built.
    """
    backbone = load_backbone(a.backbone, a.image_size, pretrained=False)
    if not a.fine_tune:
        return backbone
    first, last = cut_backbone(backbone, a.fine_tune)
    for number in range(a.posterior):
        _require_weights(last, f"backbone.networks.{number}.backbone.", weights)
    n_features = N_FEATURES[a.backbone]
    networks = [
        TunedNetwork(copy.deepcopy(last), n_features, a.n_classes) for _ in range(a.posterior)
    ]
    return TunedNetworks(first, networks)


def _require_weights(module: nn.Module, prefix: str, weights: Mapping[str, Tensor]) -> None:
    """Refuse weights that are not those of a module, by their names and shapes."""
    for name, tensor in module.state_dict().items():
        weight = weights.get(prefix + name)
        if weight is None or weight.shape != tensor.shape:
            raise InputError(f"posterior must fit the weights, but {prefix + name} is not there")
