"""One training run: a module, its loss and its optimizer, taken from epoch to epoch.

All randomness of an epoch comes from generators seeded by (seed, restart, epoch), so a run that is
resumed at the start of an epoch draws what the uninterrupted one drew.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.methods.query_log import QueryLog
from rankbits.methods.supervision import Supervision
from rankbits.methods.training import parallel
from rankbits.methods.training.batches import (
    Batch,
    LogSampler,
    StepRows,
    build_log_sampler,
    build_sampler,
    compute_loss,
    reads_chances,
)
from rankbits.methods.training.config import TrainingConfig
from rankbits.methods.training.devices import mixed_precision, use_mixed_precision
from rankbits.methods.training.divergence import DivergenceGuard
from rankbits.methods.training.encoders import encode_rows
from rankbits.methods.training.inputs import (
    Augment,
    Inputs,
    Mixture,
    add_noise,
    draw_mixture,
    leave_rows,
    mix_rows,
)
from rankbits.methods.training.layers import Standardize
from rankbits.methods.training.optimizers import (
    Optimizer,
    WeightAverage,
    build_optimizer,
    rate_factor,
    relaxation_slope,
)
from rankbits.methods.training.trained_part import has_two_maps, item_map, query_map


class TrainingRun:
    """The state of one restart, and the way from one epoch to the next."""

    def __init__(
        self,
        module: nn.Module,
        loss: nn.Module,
        inputs: Inputs,
        supervision: Supervision,
        config: TrainingConfig,
        method_name: str = "the method",
        query_inputs: Inputs | None = None,
        augment: Augment = leave_rows,
    ) -> None:
        self.module, self.loss, self.inputs = module, loss, inputs
        self.query_inputs = inputs if query_inputs is None else query_inputs
        self.supervision, self.config, self.augment = supervision, config, augment
        self.sample = _build_step_sampler(supervision, config)
        self.optimizer: Optimizer = build_optimizer(module, loss, config)
        self.average = WeightAverage(module, config.ema) if config.ema else None
        self.memory: Tensor | None = None
        self.all_levels: Tensor | None = None  # of a batch of all rows, once computed
        self.noise_scale = _measure_noise_scale(inputs, config)
        self.guard = DivergenceGuard(method_name, config.learning_rate)
        self.is_mixed = inputs.device.type == "cpu" and use_mixed_precision(config.precision)
        self.epoch = 0

    def train_epoch(self, restart: int) -> dict[str, float]:
        """Go through the rows once; returns the mean loss, and the last rate and slope."""
        config = self.config
        rng = np.random.default_rng([config.seed, restart, self.epoch + 1])
        torch.manual_seed(int(rng.integers(1 << 62)) + parallel.rank())
        noise = torch.Generator().manual_seed(int(rng.integers(1 << 62)))
        if config.gallery == "memory" and self.memory is None:
            self.memory = encode_rows(item_map(self.module), self.inputs)
        self.module.train()
        self.loss.train()
        self.supervision = self.supervision.redrawn(rng)
        batches, losses = self.sample(rng), []
        for number, rows in enumerate(batches):
            progress = (self.epoch + number / len(batches)) / config.epochs
            factor = rate_factor(config.schedule, progress, config.warm_up)
            alpha = relaxation_slope(config.alpha, config.alpha_end, progress)
            losses.append(self._step(rows, alpha, factor, rng, noise))
        self.guard.require_sound_weights(self.optimizer.n_steps, self.module)
        self.epoch += 1
        rate = config.learning_rate * factor
        return {"loss": float(np.mean(losses)), "learning_rate": rate, "alpha": alpha}

    def _step(
        self,
        rows: StepRows,
        alpha: float,
        factor: float,
        rng: np.random.Generator,
        noise: torch.Generator,
    ) -> float:
        """Encode the rows of a batch, compute the loss and move the weights."""
        mixture = self._draw_mixture(rows.queries, rng)
        logits, items = self._encode(rows, mixture, rng, noise)
        step = self.optimizer.n_steps + 1
        self.guard.require_finite_outputs(step, logits)
        if items is not None:
            self.guard.require_finite_outputs(step, items)
        batch = replace(self._describe_batch(rows, items, alpha), mixture=mixture)
        loss = compute_loss(self.loss, logits, items, batch)
        value = float(loss.detach())
        self.guard.require_finite_loss(step, value)
        if loss.requires_grad:
            self._descend(loss, factor)
        if self.memory is not None:
            encoded_items = logits if items is None else items
            self.memory[torch.from_numpy(rows.items)] = encoded_items.detach()
        return value

    def _encode(
        self,
        rows: StepRows,
        mixture: Mixture | None,
        rng: np.random.Generator,
        noise: torch.Generator,
    ) -> tuple[Tensor, Tensor | None]:
        """Logits of the queries, and those of the items unless they are the same."""
        x = others = self._read_rows(self.query_inputs, rows.queries, mixture, rng, noise)
        if not rows.are_same:
            mixture = self._draw_mixture(rows.items, rng)
            others = self._read_rows(self.inputs, rows.items, mixture, rng, noise)
        with mixed_precision(self.is_mixed):
            if rows.are_same:
                logits, items = _encode_once(self.module, x)
            else:
                logits, items = _encode_sides(self.module, x, others)
        logits = parallel.gather(logits.float(), len(rows.queries))
        return logits, None if items is None else parallel.gather(items.float(), len(rows.items))

    def _draw_mixture(self, rows: np.ndarray, rng: np.random.Generator) -> Mixture | None:
        """With which rows, and how much of them, those of a batch are mixed."""
        config = self.config
        classes = None if config.mixes_classes else self.supervision.classes
        return draw_mixture(rows, classes, config.mixup, rng)

    def _read_rows(
        self,
        inputs: Inputs,
        rows: np.ndarray,
        mixture: Mixture | None,
        rng: np.random.Generator,
        noise: torch.Generator,
    ) -> Tensor:
        """The part of the rows of a batch that this process encodes, augmented."""
        config, part = self.config, parallel.own_share(len(rows))
        x = self.augment(mix_rows(inputs, rows, mixture, part, rng), rng)
        if config.noise:
            draws = torch.randn(len(rows), *x.shape[1:], generator=noise)[part].to(x.device)
            x = add_noise(x, self.noise_scale, config.noise, draws)
        return x

    def _descend(self, loss: Tensor, factor: float) -> None:
        self.optimizer.clear_gradients()
        loss.backward()  # type: ignore[no-untyped-call]
        parallel.sum_gradients(self.module)
        if self.config.clip:
            parameters = [*self.module.parameters(), *self.loss.parameters()]
            nn.utils.clip_grad_norm_(parameters, self.config.clip)
        self.optimizer.step(factor)
        if self.average is not None:
            self.average.update(self.module)

    def _describe_batch(self, rows: StepRows, items: Tensor | None, alpha: float) -> Batch:
        """What the loss knows of a step beside the logits of its queries."""
        classes, tags = self.supervision.classes, self.supervision.tags
        batch = Batch(
            rows=rows.queries,
            levels=self._look_up_levels(rows),
            chances=self._look_up_chances(rows),
            alpha=alpha,
            classes=self._take(classes, rows.queries),
            tags=self._take(tags, rows.queries),
            gallery=self._build_gallery(rows, items),
            own=self._find_own(rows, items),
        )
        if items is None:
            return batch
        return replace(
            batch,
            trains_gallery=True,
            has_real_queries=has_two_maps(self.module) and self.config.queries == "real",
            item_rows=rows.items,
            item_classes=self._take(classes, rows.items),
            item_tags=self._take(tags, rows.items),
        )

    def _take(self, values: np.ndarray | None, rows: np.ndarray) -> Tensor | None:
        return None if values is None else torch.from_numpy(values[rows]).to(self.inputs.device)

    def _build_gallery(self, rows: StepRows, items: Tensor | None) -> Tensor | None:
        """What the queries rank: None for the batch itself.

        In a memory of all rows, those that are encoded in this step are replaced, so that they have
        a gradient.
        """
        if self.memory is None:
            return items
        gallery = self.memory.clone()
        if items is not None:
            gallery[torch.from_numpy(rows.items)] = items
        return gallery

    def _find_own(self, rows: StepRows, items: Tensor | None) -> Tensor | None:
        """The row of each query in the gallery, if queries are items."""
        if not rows.are_same:
            return None
        if self.memory is not None:
            return torch.from_numpy(rows.queries).to(self.inputs.device)
        return None if items is None else torch.arange(len(items), device=self.inputs.device)

    def _look_up_levels(self, rows: StepRows) -> Tensor:
        if self.all_levels is not None:
            return self.all_levels
        items = rows.items if self.memory is None else np.arange(len(self.inputs))
        levels = torch.from_numpy(self.supervision.levels(rows.queries, items))
        levels = levels.to(self.inputs.device)
        if rows.are_same and len(rows.queries) == len(self.inputs):
            self.all_levels = levels  # such batches have all rows in one order
        return levels

    def _look_up_chances(self, rows: StepRows) -> Tensor | None:
        """Chances for losses that read them, in the second half of the run.

        In the first half the noise of drawn labels keeps codes from settling too early.
        """
        if not reads_chances(self.loss) or 2 * self.epoch < self.config.epochs:
            return None
        items = rows.items if self.memory is None else np.arange(len(self.inputs))
        chances = self.supervision.chances(rows.queries, items)
        return None if chances is None else torch.from_numpy(chances).to(self.inputs.device)

    @contextmanager
    def evaluation_weights(self) -> Iterator[None]:
        """Make the module what it would be if training ended now: averaged, evaluation mode."""
        context = (
            nullcontext()
            if self.average is None
            else self.average.applied(
                self.module, [self.inputs, self.query_inputs], max(self.config.batch_size, 2)
            )
        )
        with context:
            self.module.eval()
            yield

    def copy_weights(self) -> dict[str, Tensor]:
        """A copy of the module's weights and buffers."""
        return {name: tensor.detach().clone() for name, tensor in self.module.state_dict().items()}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that the next epoch depends on."""
        tensors = _add_prefix("module", self.module.state_dict())
        tensors |= _add_prefix("loss", self.loss.state_dict())
        tensors |= _add_prefix("optimizer", self.optimizer.state())
        facts: dict[str, Any] = {"epoch": self.epoch, "n_steps": self.optimizer.n_steps}
        if self.average is not None:
            tensors |= _add_prefix("average", self.average.weights)
            facts["n_averaged"] = self.average.n_steps
        if self.memory is not None:
            tensors["memory"] = self.memory
        return tensors, facts

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Become what `state` described."""
        self.module.load_state_dict(select_prefix("module", tensors))
        self.loss.load_state_dict(select_prefix("loss", tensors))
        self.optimizer.restore(select_prefix("optimizer", tensors), facts["n_steps"])
        self.epoch = facts["epoch"]
        device = self.inputs.device
        if self.average is not None:
            average = select_prefix("average", tensors)
            self.average.n_steps = facts["n_averaged"]
            self.average.weights = {name: weight.to(device) for name, weight in average.items()}
        if "memory" in tensors:
            self.memory = tensors["memory"].to(device)


def _build_step_sampler(supervision: Supervision, config: TrainingConfig) -> LogSampler:
    """The function that cuts an epoch into steps, given the epoch's generator."""
    if isinstance(supervision, QueryLog):
        return build_log_sampler(config.batches, supervision, config.batch_size)
    sample = build_sampler(config.batches, supervision, config.batch_size)
    return lambda rng: [StepRows(rows, rows) for rows in sample(rng)]


def _encode_once(module: nn.Module, x: Tensor) -> tuple[Tensor, Tensor | None]:
    """Logits of rows as queries, and as items if these have a map of their own."""
    return query_map(module)(x), item_map(module)(x) if has_two_maps(module) else None


def _encode_sides(
    module: nn.Module, queries: Tensor, items: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Logits of queries and of items; one map sees both at once, as one batch to normalize."""
    if has_two_maps(module):
        return query_map(module)(queries), item_map(module)(items)
    logits = module(torch.cat([queries, items]))
    return logits[: len(queries)], logits[len(queries) :]


def select_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names start with the prefix and a dot, without them."""
    start = prefix + "."
    return {name[len(start) :]: t for name, t in tensors.items() if name.startswith(start)}


def _add_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def _measure_noise_scale(inputs: Inputs, config: TrainingConfig) -> Tensor:
    """The standard deviation of each feature or channel, or of all: the unit of noise."""
    if not config.noise:
        return torch.zeros(())
    assert isinstance(inputs, Tensor)  # noqa: S101 - rows in views have none
    layer = Standardize(inputs.shape[-1])
    constant = layer.learn(inputs.cpu(), config.noise_scaling)
    layer.scale[torch.from_numpy(constant)] = 0
    return layer.scale.to(inputs.device)
