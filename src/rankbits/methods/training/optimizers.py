"""AdamW and SGD with momentum, as torch.optim defines them.

They are written out here because creating an optimizer of torch imports its compiler, which takes
seconds, longer than training on a few thousand feature vectors. Their state is plain tensors.

Notation, for a parameter w with gradient g, rate η and decay λ:
    adamw  w <- (1 - ηλ) w;  m <- β₁m + (1-β₁)g;  v <- β₂v + (1-β₂)g²
           w <- w - η m̂ / (sqrt(v̂) + ε), m̂ = m/(1-β₁ᵗ), v̂ = v/(1-β₂ᵗ)
    sgd    g <- g + λw;  m <- μm + g;  w <- w - η m, or with Nesterov's w <- w - η (g + μm)
"""

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rankbits.methods.training.config import TrainingConfig

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
