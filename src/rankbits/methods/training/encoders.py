"""Encoders: rows of raw data in, logits out, whose signs are the bits.

    [backbone] -> standardize -> [anchors, or class posterior] -> body

The backbone is a pretrained network and may be absent; the rest is the head. Bits that keep the
geometry of the rows, if there are any, follow those of the head.
"""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.errors import InputError
from rankbits.methods.training.architecture import Architecture
from rankbits.methods.training.geometry import Geometry
from rankbits.methods.training.inputs import Inputs
from rankbits.methods.training.kinds import KINDS, check_architecture
from rankbits.methods.training.layers import (
    ClassPosterior,
    ImageLayer,
    NetworkLogits,
    Posterior,
    RbfFeatures,
    Standardize,
)

_BLOCK = 1024
_SAMPLE = 1000  # images from which layers learn before any gradient
_READER: dict[
    str, Any
] = {  # of the beliefs of a network that learned the classes: its own layers are a.hidden
    "hidden": (256,),
    "activation": "gelu",
    "normalization": "none",
    "dropout": 0.0,
    "input_dropout": 0.0,
    "skip": False,
}


class Encoder(nn.Module):
    """A backbone, if any, and a head; a frozen backbone stays in evaluation mode whatever happens.

    A backbone that is tuned keeps the statistics of its batch normalization, unless told otherwise:
    its weights were trained with them, and batches of other pictures have others.
    """

    def __init__(
        self,
        architecture: Architecture,
        backbone: nn.Module | None = None,
        keeps_statistics: bool = True,
    ) -> None:
        super().__init__()
        self.keeps_statistics = keeps_statistics
        self.architecture = architecture
        self.backbone = backbone
        self.head = _build_head(architecture)
        self.geometry: Geometry | None
        self.register_module("geometry", _build_geometry(architecture))
        self.is_frozen = False
        self.n_last: int | None = None

    def tune_last(self, n_last: int | None) -> None:
        """Let a training reach the last blocks of the backbone only; None for all."""
        self.n_last = n_last

    def freeze_backbone(self) -> None:
        """Keep the backbone as it is: no gradients, running statistics untouched."""
        self.is_frozen = True
        if self.backbone is not None:
            self.backbone.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> "Encoder":
        super().train(mode)
        if self.backbone is not None:
            if self.is_frozen:
                self.backbone.eval()
            elif self.keeps_statistics:
                keep_statistics(self.backbone)
        return self

    def forward(self, x: Tensor) -> Tensor:
        if self.backbone is not None:
            x = self.backbone(x)
        x = x.float()
        if self.geometry is None:
            logits: Tensor = self.head(x)
            return logits
        return self.geometry.extend(x, *self._compute_class_logits(x))

    def _compute_class_logits(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The head's logits, and the class posteriors (n, C); (n, 0) without classifiers."""
        probabilities = x[:, :0]  # len(x) would fix the size of a batch in an exported graph
        for name, part in self.head.named_children():
            x = part(x)
            if name == "posterior":
                probabilities = x[:, self.architecture.n_classes :]
        return x, probabilities


def build_encoder(
    architecture: Architecture, backbone: nn.Module | None = None, *, keeps_statistics: bool = True
) -> Encoder:
    """An encoder with fresh weights, drawn from torch's current generator."""
    check_architecture(architecture)
    return Encoder(architecture, backbone, keeps_statistics)


def keep_statistics(backbone: nn.Module) -> None:
    """Let batch normalization use the statistics that it has instead of those of the batch."""
    for layer in backbone.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.eval()


def learn_scales(
    encoder: Encoder, rows: Tensor, rng: np.random.Generator, scaling: str = "each"
) -> np.ndarray:
    """Set scales and anchors from the head's training inputs; returns the constant features."""
    modules = dict(encoder.head.named_children())
    constant = cast(Standardize, modules["standardize"]).learn(rows, scaling)
    if len(constant) == rows.shape[-1]:
        raise InputError(
            "X must have a feature that varies, got "
            f"{rows.shape[-1]} constant feature(s) in {len(rows)} rows"
        )
    if "anchors" in modules:
        with torch.no_grad():
            scaled = modules["standardize"].cpu()(rows.float())
            cast(RbfFeatures, modules["anchors"]).learn(scaled, rng)
            cast(Standardize, modules["rescale"]).learn(modules["anchors"](scaled))
    image_layers = [layer for layer in encoder.head.modules() if isinstance(layer, ImageLayer)]
    if image_layers:
        chosen = torch.from_numpy(rng.permutation(len(rows))[:_SAMPLE])
        sample = modules["standardize"].cpu()(rows[chosen].float())
        for layer in image_layers:
            layer.learn(sample)
    return constant


@torch.no_grad()
def encode_rows(module: nn.Module, inputs: Inputs, block: int = _BLOCK) -> Tensor:
    """Outputs of all rows in evaluation mode, in blocks."""
    was_training = module.training
    module.eval()
    blocks = [module(inputs[start : start + block]) for start in range(0, len(inputs), block)]
    module.train(was_training)
    return torch.cat(blocks)


def _build_geometry(a: Architecture) -> Geometry | None:
    n_classes = a.n_classes if a.posterior else 0
    return Geometry(a.input_shape[-1], n_classes, a.geometry_bits) if a.geometry_bits else None


def _build_head(a: Architecture) -> nn.Sequential:
    head = nn.Sequential()
    n_inputs = a.input_shape[-1]
    head.add_module("standardize", Standardize(n_inputs))
    if a.n_anchors:
        head.add_module("anchors", RbfFeatures(n_inputs, a.n_anchors))
        head.add_module("rescale", Standardize(a.n_anchors))
        n_inputs = a.n_anchors
    if a.posterior:
        head.add_module("posterior", _build_posterior(a, n_inputs))
        head.add_module("rescale", Standardize(2 * a.n_classes))
        n_inputs = 2 * a.n_classes
        a = replace(a, kind="mlp", **_READER) if KINDS[a.kind].learns_classes else a
    head.add_module("body", KINDS[a.kind].build(a, n_inputs, a.trained_bits))
    return head


def _build_posterior(a: Architecture, n_inputs: int) -> Posterior:
    """Networks that tell classes apart, before the head or in it, or classifiers of vectors."""
    if a.fine_tune:
        return Posterior([NetworkLogits(k, a.n_classes) for k in range(a.posterior)])
    kind = KINDS[a.kind]
    if kind.learns_classes:
        return Posterior([kind.build(a, n_inputs, a.n_classes) for _ in range(a.posterior)])
    return ClassPosterior(n_inputs, a.n_classes, a.posterior_width, a.posterior)
