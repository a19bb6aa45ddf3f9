"""First weights of a linear map, taken from the principal directions of its inputs.

Distances are kept from the first step on, so training begins where PCA or ITQ end. An encoder can
start like this if it is linear, or if a linear map lies beside its hidden layers: these then begin
at zero.

Notation:
    z  (n, d) inputs of the encoder's body, scaled    W  (d, b) the map    b  bits
"""

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.errors import InputError
from rankbits.methods.shallow.principal import leading_directions
from rankbits.methods.shallow.rotation import learn_rotation, random_rotation

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
