"""One run: a module, its loss and optimiser, taken from epoch to epoch.

All randomness of an epoch comes from generators seeded by (seed, restart, epoch), so a run that is
resumed at the start of an epoch draws what the uninterrupted one drew.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.methods._deep import augment, parallel, schedules
from rankbits.methods._deep.average import Average
from rankbits.methods._deep.batches import Batch, sampler
from rankbits.methods._deep.divergence import Watch
from rankbits.methods._deep.layers import Standardise
from rankbits.methods._deep.optimizers import SGD, AdamW, Leaf, Optimizer
from rankbits.methods._deep.plan import Plan
from rankbits.methods._supervision import Supervision

BLOCK = 1024


class Run:
    """The state of one restart, and the way from one epoch to the next."""

    def __init__(
        self,
        module: nn.Module,
        loss: nn.Module,
        inputs: Tensor,
        supervision: Supervision,
        plan: Plan,
        name: str = "the method",
    ) -> None:
        self.module, self.loss, self.inputs = module, loss, inputs
        self.supervision, self.plan = supervision, plan
        self.sample = sampler(plan.batches, supervision, plan.batch_size)
        self.optimizer = _optimizer(module, loss, plan)
        self.average = Average(module, plan.ema) if plan.ema else None
        self.memory: Tensor | None = None
        self.whole_levels: Tensor | None = None  # those of a batch of all rows, once computed
        self.noise_scale = _noise_scale(inputs, plan) if plan.noise else torch.zeros(())
        self.watch = Watch(name, plan.learning_rate)
        self.epoch = 0

    def train_epoch(self, restart: int) -> dict[str, float]:
        """Go through the rows once; returns the mean loss, and the last rate and slope."""
        rng = np.random.default_rng([self.plan.seed, restart, self.epoch + 1])
        torch.manual_seed(int(rng.integers(1 << 62)) + parallel.rank())
        noise = torch.Generator().manual_seed(int(rng.integers(1 << 62)))
        if self.plan.gallery == "memory" and self.memory is None:
            self.memory = encode(self.module, self.inputs)
        self.module.train()
        self.loss.train()
        self.supervision = self.supervision.redrawn(rng)
        steps, losses = self.sample(rng), []
        for number, rows in enumerate(steps):
            progress = (self.epoch + number / len(steps)) / self.plan.n_epochs
            factor = schedules.rate_factor(self.plan.schedule, progress, self.plan.warm_up)
            alpha = schedules.slope(self.plan.alpha, self.plan.alpha_end, progress)
            losses.append(self._step(rows, alpha, factor, rng, noise))
        self.watch.require_sound_weights(self.optimizer.n_steps, self.module)
        self.epoch += 1
        rate = self.plan.learning_rate * factor
        return {"loss": float(np.mean(losses)), "learning_rate": rate, "alpha": alpha}

    def _step(
        self,
        rows: np.ndarray,
        alpha: float,
        factor: float,
        rng: np.random.Generator,
        noise: torch.Generator,
    ) -> float:
        mixture = augment.mixture(rows, self.supervision.classes, self.plan, rng)
        part = parallel.share(len(rows))
        x = augment.mixed(self.inputs, rows, mixture, part)
        x = self._changed(x, len(rows), part, rng, noise)
        logits = parallel.gather(self.module(x), len(rows))
        step = self.optimizer.n_steps + 1
        self.watch.require_finite_outputs(step, logits)
        loss = self.loss(logits, self._batch(rows, alpha, mixture))
        value = float(loss.detach())
        self.watch.require_finite_loss(step, value)
        if loss.requires_grad:
            self._descend(loss, factor)
        if self.memory is not None:
            self.memory[torch.from_numpy(rows)] = logits.detach()
        return value

    def _descend(self, loss: Tensor, factor: float) -> None:
        self.optimizer.forget()
        loss.backward()  # type: ignore[no-untyped-call]
        parallel.sum_gradients(self.module)
        if self.plan.clip:
            parameters = [*self.module.parameters(), *self.loss.parameters()]
            nn.utils.clip_grad_norm_(parameters, self.plan.clip)
        self.optimizer.step(factor)
        if self.average is not None:
            self.average.update(self.module)

    def _changed(
        self, x: Tensor, n: int, part: slice, rng: np.random.Generator, noise: torch.Generator
    ) -> Tensor:
        if self.plan.flip or self.plan.shift:
            x = augment.moved(x, self.plan.flip, self.plan.shift, rng)
        if self.plan.noise:
            draws = torch.randn(n, *x.shape[1:], generator=noise)[part].to(x.device)
            x = augment.noisy(x, self.noise_scale, self.plan.noise, draws)
        return x

    def _batch(self, rows: np.ndarray, alpha: float, mixture: augment.Mixture | None) -> Batch:
        items = rows if self.memory is None else np.arange(len(self.supervision))
        device = self.inputs.device
        classes, tags = self.supervision.classes, self.supervision.tags
        across = mixture is not None and self.plan.mix_across
        return Batch(
            rows=rows,
            levels=self._levels(rows, items),
            alpha=alpha,
            classes=None if classes is None else torch.from_numpy(classes[rows]).to(device),
            tags=None if tags is None else torch.from_numpy(tags[rows]).to(device),
            gallery=None if self.memory is None else self.memory.clone(),
            own=None if self.memory is None else torch.from_numpy(rows).to(device),
            partners=mixture.partners if mixture and across else None,
            weights=torch.from_numpy(mixture.weights).to(device) if mixture and across else None,
        )

    def _levels(self, rows: np.ndarray, items: np.ndarray) -> Tensor:
        if self.whole_levels is not None:
            return self.whole_levels
        levels = torch.from_numpy(self.supervision.levels(rows, items)).to(self.inputs.device)
        if len(rows) == len(self.supervision):  # such batches all have the same rows and order
            self.whole_levels = levels
        return levels

    @contextmanager
    def judged(self) -> Iterator[None]:
        """The module as it would be handed out now: averaged weights, evaluation mode."""
        context = (
            nullcontext()
            if self.average is None
            else self.average.applied(self.module, self.inputs, max(self.plan.batch_size, 2))
        )
        with context:
            self.module.eval()
            yield

    def weights(self) -> dict[str, Tensor]:
        """A copy of the module's weights and buffers."""
        return {name: tensor.detach().clone() for name, tensor in self.module.state_dict().items()}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that the next epoch depends on."""
        tensors = _under("module", self.module.state_dict())
        tensors |= _under("loss", self.loss.state_dict())
        tensors |= _under("optimizer", self.optimizer.state())
        facts: dict[str, Any] = {"epoch": self.epoch, "n_steps": self.optimizer.n_steps}
        if self.average is not None:
            tensors |= _under("average", self.average.weights)
            facts["n_averaged"] = self.average.n_steps
        if self.memory is not None:
            tensors["memory"] = self.memory
        return tensors, facts

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Become what `state` described."""
        self.module.load_state_dict(below("module", tensors))
        self.loss.load_state_dict(below("loss", tensors))
        self.optimizer.restore(below("optimizer", tensors), facts["n_steps"])
        self.epoch = facts["epoch"]
        device = self.inputs.device
        if self.average is not None:
            self.average.n_steps = facts["n_averaged"]
            self.average.weights = {k: v.to(device) for k, v in below("average", tensors).items()}
        if "memory" in tensors:
            self.memory = tensors["memory"].to(device)


@torch.no_grad()
def encode(module: nn.Module, inputs: Tensor, block: int = BLOCK) -> Tensor:
    """Outputs of all rows in evaluation mode, in blocks."""
    was_training = module.training
    module.eval()
    blocks = [module(inputs[start : start + block]) for start in range(0, len(inputs), block)]
    module.train(was_training)
    return torch.cat(blocks)


def below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names start with the prefix and a dot, without them."""
    start = prefix + "."
    return {name[len(start) :]: t for name, t in tensors.items() if name.startswith(start)}


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def _noise_scale(inputs: Tensor, plan: Plan) -> Tensor:
    """The standard deviation of each feature or channel, or of all: the unit of noise."""
    layer = Standardise(inputs.shape[-1])
    constant = layer.learn(inputs.cpu(), "common" if plan.even_noise else "each")
    layer.scale[torch.from_numpy(constant)] = 0
    return layer.scale.to(inputs.device)


def _optimizer(module: nn.Module, loss: nn.Module, plan: Plan) -> Optimizer:
    """Only matrices decay; a trunk learns more slowly."""
    parts = {"module": module, "loss": loss}
    leaves = []
    for part, owner in parts.items():
        for name, weight in owner.named_parameters():
            if weight.requires_grad:
                is_trunk = part == "module" and name.startswith("trunk.")
                rate = plan.learning_rate * (plan.trunk_factor if is_trunk else 1.0)
                decay = plan.weight_decay if weight.dim() > 1 else 0.0
                leaves.append(Leaf(f"{part}.{name}", weight, rate, decay))
    if plan.optimizer == "sgd":
        return SGD(leaves, plan.momentum, plan.nesterov)
    return AdamW(leaves)
