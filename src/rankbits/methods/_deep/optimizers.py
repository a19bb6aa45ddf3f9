"""AdamW and SGD with momentum, as torch.optim defines them.

They are written out here because creating an optimiser of torch imports its compiler, which takes
seconds, longer than training on a few thousand feature vectors. Their state is plain tensors.

Notation, for a parameter w with gradient g, rate η and decay λ:
    adamw  w <- (1 - ηλ) w;  m <- β₁m + (1-β₁)g;  v <- β₂v + (1-β₂)g²
           w <- w - η m̂ / (sqrt(v̂) + ε), m̂ = m/(1-β₁ᵗ), v̂ = v/(1-β₂ᵗ)
    sgd    g <- g + λw;  m <- μm + g;  w <- w - η m, or with Nesterov's w <- w - η (g + μm)
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

_BETAS, _EPSILON = (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class Leaf:
    """A parameter with its own learning rate and decay."""

    name: str
    weight: nn.Parameter
    rate: float
    decay: float


class Optimizer:
    """What both have in common: leaves, moments, and the way they are saved."""

    n_moments = 1

    def __init__(self, leaves: list[Leaf]) -> None:
        self.leaves, self.n_steps = leaves, 0
        self.moments = {
            leaf.name: [torch.zeros_like(leaf.weight) for _ in range(self.n_moments)]
            for leaf in leaves
        }

    def forget(self) -> None:
        """Drop the gradients of the last step."""
        for leaf in self.leaves:
            leaf.weight.grad = None

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """Move every weight that has a gradient; `factor` multiplies all rates."""
        self.n_steps += 1
        for leaf in self.leaves:
            if leaf.weight.grad is not None:
                self._move(leaf, leaf.weight.grad, leaf.rate * factor)

    def _move(self, leaf: Leaf, gradient: Tensor, rate: float) -> None:
        raise NotImplementedError

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

    def _move(self, leaf: Leaf, gradient: Tensor, rate: float) -> None:
        first, second = self.moments[leaf.name]
        first.lerp_(gradient, 1 - _BETAS[0])
        second.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
        corrections = [1 - beta**self.n_steps for beta in _BETAS]
        scale = second.sqrt().div_(math.sqrt(corrections[1])).add_(_EPSILON)
        leaf.weight.mul_(1 - rate * leaf.decay)
        leaf.weight.addcdiv_(first, scale, value=-rate / corrections[0])


class SGD(Optimizer):
    """Stochastic gradient descent with momentum, Nesterov's if asked."""

    def __init__(self, leaves: list[Leaf], momentum: float, nesterov: bool) -> None:
        super().__init__(leaves)
        self.momentum, self.nesterov = momentum, nesterov

    def _move(self, leaf: Leaf, gradient: Tensor, rate: float) -> None:
        (moment,) = self.moments[leaf.name]
        gradient = gradient.add(leaf.weight, alpha=leaf.decay)
        moment.mul_(self.momentum).add_(gradient)
        if self.nesterov:
            moment = gradient.add(moment, alpha=self.momentum)
        leaf.weight.add_(moment, alpha=-rate)
