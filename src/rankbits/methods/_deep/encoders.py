"""Encoders: rows of raw data in, logits out, whose signs are the bits.

    [trunk] -> standardise -> [anchors, or class posterior] -> body

The trunk is a pretrained network and may be absent; the rest is the head. An encoder is built from
a `Description`, plain numbers and words, so that weights and description rebuild it without pickle.
"""

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from rankbits import _check
from rankbits.errors import InputError
from rankbits.methods._deep.layers import (
    Anchors,
    BatchNorm1d,
    BatchNorm2d,
    Dropout,
    Posterior,
    Standardise,
)

KINDS = ("linear", "mlp", "cnn")
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}
SCALINGS = ("each", "common")
NORMALISATIONS = ("none", "batch", "layer")
_CNN_WIDTHS = (32, 64, 128)


@dataclass(frozen=True)
class Description:
    """All that is needed to build an encoder, apart from its weights."""

    kind: str  # linear, mlp or cnn: the head
    input_shape: tuple[int, ...]  # of one row as the head sees it: (features,) or (H, W, channels)
    n_bits: int
    hidden: tuple[int, ...] = ()
    activation: str = "relu"
    normalisation: str = "batch"
    dropout: float = 0.0
    input_dropout: float = 0.0
    skip: bool = False  # a linear map beside the hidden layers
    n_anchors: int = 0  # RBF features in front of linear or mlp; 0 for none
    trunk: str = ""  # name of the pretrained network, "module" for the user's own, "" for none
    image_size: int = 0  # what the trunk resizes images to
    n_members: int = 0  # classifiers whose posterior the body reads; 0 for none
    n_classes: int = 0
    width: int = 0  # of a classifier

    def to_json(self) -> dict[str, Any]:
        """The description as JSON values."""
        return asdict(self)

    @staticmethod
    def from_json(facts: dict[str, Any]) -> "Description":
        """The description that `to_json` wrote; an unknown or missing entry is refused."""
        try:
            shapes = {name: tuple(facts[name]) for name in ("input_shape", "hidden")}
            return Description(**{**facts, **shapes})
        except (KeyError, TypeError) as error:
            raise InputError(f"encoder description is not one of this version: {error}") from None


class Encoder(nn.Module):
    """A trunk, if any, and a head; a frozen trunk stays in evaluation mode whatever happens.

    A trunk that is tuned keeps the statistics of its batch normalisation, unless asked not to: its
    weights were trained with them, and batches of other pictures have others.
    """

    def __init__(
        self, description: Description, trunk: nn.Module | None = None, keeps: bool = True
    ) -> None:
        super().__init__()
        self.keeps_statistics = keeps
        self.description = description
        self.trunk = trunk
        self.head = _head(description)
        self.is_frozen = False

    def freeze(self) -> None:
        """Keep the trunk as it is: no gradients, running statistics untouched."""
        self.is_frozen = True
        if self.trunk is not None:
            self.trunk.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> "Encoder":
        super().train(mode)
        if self.trunk is not None:
            if self.is_frozen:
                self.trunk.eval()
            elif self.keeps_statistics:
                for layer in self.trunk.modules():
                    if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                        layer.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        if self.trunk is not None:
            x = self.trunk(x)
        logits: Tensor = self.head(x.float())
        return logits


class _Mlp(nn.Module):
    """Hidden layers and a linear output, with a linear map beside them if asked."""

    def __init__(self, n_inputs: int, d: Description) -> None:
        super().__init__()
        self.input_dropout = Dropout(d.input_dropout)
        layers: list[nn.Module] = []
        sizes = (n_inputs, *(d.hidden if d.kind == "mlp" else ()))
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after), *_normalisation(d.normalisation, after)]
            layers += [ACTIVATIONS[d.activation](), Dropout(d.dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-1], d.n_bits))
        has_skip = d.skip and len(sizes) > 1
        self.skip = nn.Linear(n_inputs, d.n_bits, bias=False) if has_skip else None

    def forward(self, x: Tensor) -> Tensor:
        x = self.input_dropout(x)
        logits: Tensor = self.layers(x)
        return logits if self.skip is None else logits + self.skip(x)


class _Cnn(nn.Module):
    """Three stages of two 3 × 3 convolutions, halving the image after each, then the mean."""

    def __init__(self, d: Description) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = d.input_shape[2]
        for width in d.hidden or _CNN_WIDTHS:
            for size in (before, width):
                layers.append(nn.Conv2d(size, width, 3, padding=1, bias=False))
                layers += [BatchNorm2d(width), ACTIVATIONS[d.activation]()]
            layers.append(nn.MaxPool2d(2))
            before = width
        self.stages = nn.Sequential(*layers)
        self.dropout = Dropout(d.dropout)
        self.output = nn.Linear(before, d.n_bits)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.stages(x.permute(0, 3, 1, 2))
        logits: Tensor = self.output(self.dropout(maps.mean((2, 3))))
        return logits


def build(
    description: Description, trunk: nn.Module | None = None, *, keeps_statistics: bool = True
) -> Encoder:
    """An encoder with fresh weights, drawn from torch's current generator."""
    d = description
    _check.choice("encoder", d.kind, KINDS)
    _check.choice("activation", d.activation, tuple(ACTIVATIONS))
    _check.choice("normalisation", d.normalisation, NORMALISATIONS)
    for name in ("dropout", "input_dropout"):
        if not 0 <= getattr(d, name) < 1:
            raise InputError(f"{name} must lie in [0, 1), got {getattr(d, name)}")
    for size in d.hidden:
        _check.whole("hidden", size, 1)
    _check_shape(d)
    return Encoder(d, trunk, keeps_statistics)


def learn(
    encoder: Encoder, rows: Tensor, rng: np.random.Generator, scaling: str = "each"
) -> np.ndarray:
    """Set scales and anchors from the head's training inputs; returns the constant features."""
    _check.choice("scaling", scaling, SCALINGS)
    modules = dict(encoder.head.named_children())
    constant = cast(Standardise, modules["standardise"]).learn(rows, scaling)
    if len(constant) == rows.shape[-1]:
        raise InputError(
            "X must have a feature that varies, got "
            f"{rows.shape[-1]} constant feature(s) in {len(rows)} rows"
        )
    if "anchors" in modules:
        learn_anchors = cast(Anchors, modules["anchors"]).learn
        with torch.no_grad():
            scaled = modules["standardise"].cpu()(rows.float())
            learn_anchors(scaled, rng)
            cast(Standardise, modules["rescale"]).learn(modules["anchors"](scaled))
    return constant


def _head(d: Description) -> nn.Sequential:
    head = nn.Sequential()
    head.add_module("standardise", Standardise(d.input_shape[-1]))
    n_inputs = d.input_shape[-1]
    if d.n_anchors:
        head.add_module("anchors", Anchors(n_inputs, d.n_anchors))
        head.add_module("rescale", Standardise(d.n_anchors))
        n_inputs = d.n_anchors
    if d.n_members:
        head.add_module("posterior", Posterior(n_inputs, d.n_classes, d.width, d.n_members))
        head.add_module("rescale", Standardise(2 * d.n_classes))
        n_inputs = 2 * d.n_classes
    head.add_module("body", _Cnn(d) if d.kind == "cnn" else _Mlp(n_inputs, d))
    return head


def _normalisation(name: str, size: int) -> list[nn.Module]:
    if name == "batch":
        return [BatchNorm1d(size)]
    return [nn.LayerNorm(size)] if name == "layer" else []


def _check_shape(d: Description) -> None:
    if d.kind != "cnn":
        if len(d.input_shape) != 1:
            raise InputError(
                f"X must have shape (n, features) for encoder {d.kind!r}, got rows of shape "
                f"{d.input_shape}; images go to encoder='cnn' or 'backbone'"
            )
        return
    n_stages = len(d.hidden or _CNN_WIDTHS)
    if len(d.input_shape) != 3 or min(d.input_shape[:2]) < 2**n_stages:
        raise InputError(
            "X must have shape (n, height, width, channels) for encoder 'cnn', with at least "
            f"{2**n_stages} pixels a side, got rows of shape {d.input_shape}"
        )
    if d.n_anchors:
        raise InputError("kernel must be None for encoder 'cnn': anchors are feature vectors")
