"""What gradients reach: the trained part of an encoder, its first weights, and one map or two.

A frame is an encoder whose scales, anchors and classifiers are settled. A training draws fresh
weights for the rest, trains the part that is not settled, and puts it back into the frame: what
follows a class posterior, or what the frame selects, which is all of it unless there is a backbone.

A linear map may start from the principal directions of its inputs, so that training begins where
PCA or ITQ end: a linear encoder, or the map beside hidden layers, which then begin at zero.

The module that a training moves is one map from rows to logits for queries and items, or one for
each. Whoever encodes rows asks here for the map of their side.

Notation:
    z  (n, d) inputs of the encoder's body, scaled    W  (d, b) the map    b  bits
"""

import copy
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.errors import InputError
from rankbits.methods.shallow.shared.principal import leading_directions
from rankbits.methods.shallow.shared.rotation import learn_rotation, random_rotation
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.config import TrainingConfig
from rankbits.methods.training.encoders import Encoder
from rankbits.methods.training.inputs import Augment, Inputs, leave_rows
from rankbits.methods.training.layers import settled_buffers

if TYPE_CHECKING:
    from rankbits.methods.training.preparation import Preparation


_N_ROTATIONS = 50


class Initialization:
    """First weights by name; principal directions are computed once, whatever the restarts."""

    def __init__(self, name: str, head: nn.Sequential, rows: Tensor, n_bits: int) -> None:
        self.name, self.n_bits = name, n_bits
        if name == "random":
            return
        if _find_linear_map(head) is None:
            raise InputError(
                f"init must be 'random' for an encoder without a linear map, got {name!r}; use "
                "encoder='linear' or skip=True"
            )
        inputs = _compute_body_inputs(head, rows)
        self.mean = inputs.mean(axis=0)
        self.directions = leading_directions(inputs - self.mean, n_bits)
        self.coordinates = (inputs - self.mean) @ self.directions

    def apply(self, head: nn.Sequential) -> None:
        """Set the weights of a head with fresh ones; what is random comes from torch's generator.

        W = directions, rotated for "itq", and scaled so that |z W| is 1 in the mean. Where bits
        outnumber directions, the others keep random weights of the same scale.
        """
        if self.name == "random":
            return
        rng = np.random.RandomState(int(torch.randint(1 << 31, ())))
        n_directions = self.directions.shape[1]
        rotation = np.eye(n_directions)
        if self.name == "itq":
            rotation = random_rotation(n_directions, rng)
            rotation, _ = learn_rotation(self.coordinates, rotation, _N_ROTATIONS)
        planes = self.directions @ rotation / np.abs(self.coordinates @ rotation).mean()
        others = rng.standard_normal((len(planes), self.n_bits - n_directions))
        others *= np.linalg.norm(planes, axis=0).mean() / len(planes) ** 0.5
        _set_linear_map(head, np.hstack([planes, others]), self.mean)


def _compute_body_inputs(head: nn.Sequential, rows: Tensor) -> np.ndarray:
    """What the body sees of the rows, in double."""
    with torch.no_grad():
        x = rows.float()
        for name, part in head.named_children():
            x = x if name == "body" else part.cpu()(x)
    return x.double().numpy()


def _find_linear_map(head: nn.Sequential) -> nn.Linear | None:
    """The map to the logits from inputs of the body that are known before training, if any."""
    parts = dict(head.named_children())
    if "posterior" in parts:
        return None
    body = parts["body"]
    skip = cast(nn.Linear | None, getattr(body, "skip", None))
    layers = cast(nn.Sequential | None, getattr(body, "layers", None))
    if layers is not None and len(layers) == 1:
        return cast(nn.Linear, layers[0])
    return skip


@torch.no_grad()
def _set_linear_map(head: nn.Sequential, planes: np.ndarray, mean: np.ndarray) -> None:
    """Make the logits (z - mean) planes."""
    output = cast(nn.Linear, cast(nn.Sequential, dict(head.named_children())["body"].layers)[-1])
    output.weight.zero_()
    output.bias.copy_(torch.from_numpy(-mean @ planes))
    linear_map = _find_linear_map(head)
    assert linear_map is not None  # noqa: S101
    linear_map.weight.copy_(torch.from_numpy(planes.T))


def build_trained_part(frame: Encoder, initialization: Initialization) -> nn.Module:
    """The part to train, with fresh weights."""
    encoder = build_fresh_encoder(frame, initialization)
    if frame.architecture.posterior:
        parts = dict(encoder.head.named_children())
        return nn.Sequential(OrderedDict(rescale=parts["rescale"], body=parts["body"]))
    return frame.select_trained(encoder)


def build_fresh_encoder(frame: Encoder, initialization: Initialization) -> Encoder:
    """Fresh weights, drawn from torch's generator, around the scales and anchors of the frame."""
    encoder = frame.build_alike()
    encoder.head.load_state_dict(settled_buffers(frame.head), strict=False)
    initialization.apply(encoder.head)
    return encoder


def assemble_encoder(frame: Encoder, part: nn.Module) -> Encoder:
    """The encoder of raw rows around a trained part, in evaluation mode."""
    if isinstance(part, Encoder):
        return frame.join(part).eval()
    parts = {**dict(frame.head.named_children()), **dict(part.named_children())}
    encoder = copy.copy(frame)  # shares everything else with the frame
    encoder._modules = {**frame._modules, "head": nn.Sequential(OrderedDict(parts))}
    return encoder.eval()


class TwoMaps(nn.Module):
    """A map for items, and one for queries that starts from the same weights."""

    def __init__(self, items: nn.Module) -> None:
        super().__init__()
        self.items, self.queries = items, copy.deepcopy(items)


def item_map(module: nn.Module) -> nn.Module:
    """The map that encodes items."""
    return module.items if isinstance(module, TwoMaps) else module


def query_map(module: nn.Module) -> nn.Module:
    """The map that encodes queries."""
    return module.queries if isinstance(module, TwoMaps) else module


def maps_of(module: nn.Module) -> list[nn.Module]:
    """All maps of a module, each once."""
    return [module.items, module.queries] if isinstance(module, TwoMaps) else [module]


def has_two_maps(module: nn.Module) -> bool:
    """Whether queries are encoded by a map of their own."""
    return isinstance(module, TwoMaps)


@dataclass(frozen=True)
class BitsStart:
    """What the training of the bits starts from."""

    frame: Encoder  # what the trained part belongs into
    config: TrainingConfig
    inputs: Inputs
    supervision: Supervision
    build_part: Callable[[], nn.Module]  # with fresh weights
    augment: Augment = leave_rows
    posterior_report: dict[str, Any] | None = None


def start_on_rows(preparation: "Preparation") -> BitsStart:
    """Bits that are trained on the rows themselves."""
    frame, examples, split = preparation.encoder, preparation.examples, preparation.split
    inputs = examples.split_items(split).take_training(examples.reader.trained_rows)
    return BitsStart(
        frame=frame,
        config=preparation.config,
        inputs=inputs.to(preparation.device),
        supervision=preparation.supervision.take(split.train),
        build_part=lambda: build_trained_part(frame, preparation.initialization),
    )
