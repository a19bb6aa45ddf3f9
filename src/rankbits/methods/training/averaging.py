"""The exponential moving average of the weights, which ranks better than the last step's.

    w̄ <- r w̄ + (1 - r) w,   r = min(decay, (1 + t)/(10 + t)) at step t

so that early steps are forgotten quickly. Running statistics of batch normalization belong to the
weights they were measured with: they are measured again for the average.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from rankbits.methods.training import parallel
from rankbits.methods.training.inputs import Inputs
from rankbits.methods.training.maps import maps_of

_Norm = nn.modules.batchnorm._BatchNorm
_ROWS = 8192


class WeightAverage:
    """Shadow of the parameters of a module."""

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay, self.n_steps = decay, 0
        self.weights = {
            name: parameter.detach().clone() for name, parameter in module.named_parameters()
        }

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Move towards the module's weights after a step."""
        rate = min(self.decay, (1 + self.n_steps) / (10 + self.n_steps))
        self.n_steps += 1
        for name, parameter in module.named_parameters():
            self.weights[name].lerp_(parameter.detach(), 1 - rate)

    @contextmanager
    def applied(self, module: nn.Module, inputs: list[Inputs], block: int) -> Iterator[None]:
        """Put the average into the module for the length of a block.

        `inputs` are the rows that each of its maps reads: the items, and the queries.
        """
        last = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
        module.load_state_dict({**last, **self.weights})
        try:
            for part, rows in zip(maps_of(module), inputs, strict=False):
                measure_statistics(part, rows, block)
            yield
        finally:
            module.load_state_dict(last)


@torch.no_grad()
def measure_statistics(module: nn.Module, inputs: Inputs, block: int) -> None:
    """Running statistics of batch normalization anew, as plain means over blocks of rows.

    Layers that keep theirs in training keep them here.
    """
    was_training = module.training
    module.train()
    norms = [layer for layer in module.modules() if isinstance(layer, _Norm) and layer.training]
    norms = [layer for layer in norms if layer.running_mean is not None]
    module.train(was_training)
    if not norms:
        return
    momenta = [layer.momentum for layer in norms]
    module.eval()
    for layer in norms:
        layer.reset_running_stats()
        layer.momentum = None
        layer.training = True
    order = np.random.default_rng(0).permutation(len(inputs))  # rows may come class by class
    rows = inputs[torch.from_numpy(order[:_ROWS])]
    with parallel.alone():
        for start in range(0, max(len(rows) - 1, 1), block):  # a last row alone has no variance
            module(rows[start : start + block])
    module.train(was_training)
    for layer, momentum in zip(norms, momenta, strict=True):
        layer.momentum = momentum
