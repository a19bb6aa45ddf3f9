"""How weights move: AdamW and SGD, the schedule of the learning rate, and the average of weights.

Both optimizers are as torch.optim defines them. They are written out here because creating one of
torch imports its compiler, which takes seconds, longer than training on a few thousand feature
vectors. Their state is plain tensors. Schedules are functions of the progress t of a run alone, so
that a resumed run needs nothing but its step.

Notation, for a parameter w with gradient g, rate η and decay λ:
    adamw  w <- (1 - ηλ) w;  m <- β₁m + (1-β₁)g;  v <- β₂v + (1-β₂)g²
           w <- w - η m̂ / (sqrt(v̂) + ε), m̂ = m/(1-β₁ᵗ), v̂ = v/(1-β₂ᵗ)
    sgd    g <- g + λw;  m <- μm + g;  w <- w - η m, or with Nesterov's w <- w - η (g + μm)
    average of the weights, which ranks better than those of the last step:
           w̄ <- r w̄ + (1 - r) w,   r = min(decay, (1 + t)/(10 + t)) at step t
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.methods.training import parallel
from rankbits.methods.training.config import TrainingConfig
from rankbits.methods.training.inputs import Inputs
from rankbits.methods.training.trained_part import maps_of

_BETAS, _EPSILON = (0.9, 0.999), 1e-8
_MOMENTUM = 0.9  # of SGD
_BACKBONE = re.compile(r"(items\.|queries\.|classifiers\.members\.\d+\.)?backbone\.")


@dataclass(frozen=True)
class TrainedWeight:
    """A parameter with its own learning rate and decay."""

    name: str
    weight: nn.Parameter
    rate: float
    decay: float


class Optimizer(ABC):
    """What both have in common: weights, moments, and the way they are saved."""

    n_moments = 1

    def __init__(self, weights: list[TrainedWeight]) -> None:
        self.weights, self.n_steps = weights, 0
        self.moments = {
            trained.name: [torch.zeros_like(trained.weight) for _ in range(self.n_moments)]
            for trained in weights
        }

    def clear_gradients(self) -> None:
        """Drop the gradients of the last step."""
        for trained in self.weights:
            trained.weight.grad = None

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """Move every weight that has a gradient; `factor` multiplies all rates."""
        self.n_steps += 1
        for trained in self.weights:
            if trained.weight.grad is not None:
                self._move(trained, trained.weight.grad, trained.rate * factor)

    @abstractmethod
    def _move(self, trained: TrainedWeight, gradient: Tensor, rate: float) -> None:
        """Move one weight against its gradient."""

    def state(self) -> dict[str, Tensor]:
        """The moments by number and name."""
        return {
            f"{number}.{name}": moment
            for name, moments in self.moments.items()
            for number, moment in enumerate(moments)
        }

    def restore(self, state: dict[str, Tensor], n_steps: int) -> None:
        """Become what `state` described."""
        self.n_steps = n_steps
        for key, moment in self.state().items():
            moment.copy_(state[key])


class AdamW(Optimizer):
    """Adam with decoupled decay (Loshchilov & Hutter, ICLR 2019)."""

    n_moments = 2

    def _move(self, trained: TrainedWeight, gradient: Tensor, rate: float) -> None:
        first, second = self.moments[trained.name]
        first.lerp_(gradient, 1 - _BETAS[0])
        second.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
        corrections = [1 - beta**self.n_steps for beta in _BETAS]
        scale = second.sqrt().div_(math.sqrt(corrections[1])).add_(_EPSILON)
        trained.weight.mul_(1 - rate * trained.decay)
        trained.weight.addcdiv_(first, scale, value=-rate / corrections[0])


class SGD(Optimizer):
    """Stochastic gradient descent with momentum, on request Nesterov's."""

    def __init__(self, weights: list[TrainedWeight], momentum: float, nesterov: bool) -> None:
        super().__init__(weights)
        self.momentum, self.nesterov = momentum, nesterov

    def _move(self, trained: TrainedWeight, gradient: Tensor, rate: float) -> None:
        (moment,) = self.moments[trained.name]
        gradient = gradient.add(trained.weight, alpha=trained.decay)
        moment.mul_(self.momentum).add_(gradient)
        if self.nesterov:
            moment = gradient.add(moment, alpha=self.momentum)
        trained.weight.add_(moment, alpha=-rate)


def build_optimizer(module: nn.Module, loss: nn.Module, config: TrainingConfig) -> Optimizer:
    """The optimizer of a module and its loss: only matrices decay, a backbone learns slowly."""
    weights = []
    for part, owner in {"module": module, "loss": loss}.items():
        for name, weight in owner.named_parameters():
            if weight.requires_grad:
                is_backbone = part == "module" and _BACKBONE.match(name) is not None
                rate = config.learning_rate * (config.backbone_rate if is_backbone else 1.0)
                decay = config.weight_decay if weight.dim() > 1 else 0.0
                weights.append(TrainedWeight(f"{part}.{name}", weight, rate, decay))
    if config.optimizer == "sgd":
        return SGD(weights, _MOMENTUM, config.nesterov)
    return AdamW(weights)


_DROPS = (0.5, 0.75)  # where "step" divides by ten
_RISE = 0.3  # share of "one-cycle" spent rising
_START, _END = 1 / 25, 1e-4  # of the peak, where "one-cycle" begins and ends


def rate_factor(schedule: str, progress: float, warm_up: float = 0.0) -> float:
    """What the learning rate is multiplied by.

    "constant": 1; "cosine": (1 + cos πt)/2; "step": a tenth at t = 1/2 and again at 3/4;
    "one-cycle": a cosine from 1/25 up to 1 at t = 0.3, then down to 1e-4. A warm-up multiplies the
    first `warm_up` share of the run by a line that rises from 0, exclusive, to 1.

    >>> [rate_factor("step", t) for t in (0.0, 0.5, 1.0)]
    [1.0, 0.1, 0.01]
    """
    factor = _factor(schedule, progress)
    if progress < warm_up:
        factor *= max(progress / warm_up, 1e-3)
    return factor


def relaxation_slope(alpha: float, alpha_end: float | None, progress: float) -> float:
    """α at t: constant, or growing geometrically to `alpha_end` (continuation).

    >>> [round(relaxation_slope(0.5, 8.0, t), 3) for t in (0.0, 0.5, 1.0)]
    [0.5, 2.0, 8.0]
    """
    if alpha_end is None:
        return alpha
    return float(alpha * (alpha_end / alpha) ** progress)


def _factor(schedule: str, t: float) -> float:
    if schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * t))
    if schedule == "step":
        return round(0.1 ** sum(t >= drop for drop in _DROPS), 12)
    if schedule == "one-cycle":
        if t < _RISE:
            return 1 - (1 - _START) * 0.5 * (1 + math.cos(math.pi * t / _RISE))
        return _END + (1 - _END) * 0.5 * (1 + math.cos(math.pi * (t - _RISE) / (1 - _RISE)))
    return 1.0


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
