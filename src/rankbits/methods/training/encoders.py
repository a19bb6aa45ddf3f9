"""Encoders: rows of raw data in, logits out, whose signs are the bits.

    [backbone] -> standardize -> [anchors, or class posterior] -> body

The backbone is a pretrained network and may be absent (`vision.backbone_encoder` has it); the rest
is the head. Bits that keep the geometry of the rows, if there are any, follow those of the head.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.errors import InputError
from rankbits.methods.training.geometry import Geometry
from rankbits.methods.training.inputs import Inputs
from rankbits.methods.training.kinds import (
    KINDS,
    Architecture,
    backbone_encoder_class,
    check_architecture,
)
from rankbits.methods.training.layers import (
    ClassPosterior,
    Posterior,
    RbfFeatures,
    Standardize,
)

_BLOCK = 1024
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
    """A head, from rows to the logits of trained bits, and the geometry of the rows, if any."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.head = self._build_head(architecture)
        self.geometry: Geometry | None
        self.register_module("geometry", _build_geometry(architecture))

    @property
    def block(self) -> int:
        """Rows that are encoded at a time."""
        return KINDS[self.architecture.kind].block

    def build_alike(self) -> "Encoder":
        """An encoder like this one with fresh weights, to be trained."""
        return Encoder(self.architecture)

    def select_trained(self, fresh: "Encoder") -> nn.Module:
        """The part of a fresh encoder that gradients reach."""
        return fresh

    def join(self, part: "Encoder") -> "Encoder":
        """The encoder of raw rows, of a trained one that this one is the frame of."""
        return part

    def forward(self, x: Tensor) -> Tensor:
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

    def _build_head(self, a: Architecture) -> nn.Sequential:
        head = nn.Sequential()
        n_inputs = a.input_shape[-1]
        head.add_module("standardize", Standardize(n_inputs))
        if a.n_anchors:
            head.add_module("anchors", RbfFeatures(n_inputs, a.n_anchors))
            head.add_module("rescale", Standardize(a.n_anchors))
            n_inputs = a.n_anchors
        if a.posterior:
            head.add_module("posterior", self._build_posterior(a, n_inputs))
            head.add_module("rescale", Standardize(2 * a.n_classes))
            n_inputs = 2 * a.n_classes
            a = replace(a, kind="mlp", **_READER) if KINDS[a.kind].learns_classes else a
        head.add_module("body", KINDS[a.kind].network(a, n_inputs, a.trained_bits))
        return head

    def _build_posterior(self, a: Architecture, n_inputs: int) -> Posterior:
        """Networks that tell classes apart, or small classifiers of vectors."""
        kind = KINDS[a.kind]
        if kind.learns_classes:
            return Posterior([kind.network(a, n_inputs, a.n_classes) for _ in range(a.posterior)])
        return ClassPosterior(n_inputs, a.n_classes, a.posterior_width, a.posterior)


def build_encoder(architecture: Architecture) -> Encoder:
    """An encoder with fresh weights, drawn from torch's current generator."""
    check_architecture(architecture)
    return Encoder(architecture)


def rebuild_encoder(architecture: Architecture, weights: Mapping[str, Tensor]) -> Encoder:
    """An encoder of a checked architecture that takes these weights, if they are its own."""
    if architecture.backbone:
        encoder: Encoder = backbone_encoder_class().rebuild(architecture, weights)
        return encoder
    return Encoder(architecture)


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
