"""The trainer: restarts, validation, early stopping, checkpoints and log around training runs.

The loss is a torch module with `forward(logits, batch) -> scalar`; it may own parameters. The score
is a callback that takes the trained module in evaluation mode and returns a number, larger being
better. With a score, the weights of the best epoch of the best restart are returned; without one,
the last weights of the restart with the smallest training loss.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankbits import _check
from rankbits.errors import InputError
from rankbits.methods.supervision import Supervision
from rankbits.methods.training import parallel
from rankbits.methods.training.checkpoints import Checkpoints
from rankbits.methods.training.config import TrainingConfig
from rankbits.methods.training.devices import own_generators
from rankbits.methods.training.inputs import Augment, Inputs, leave_rows
from rankbits.methods.training.log import ProgressCallback, TrainingLog
from rankbits.methods.training.run import TrainingRun, select_prefix

Score = Callable[[nn.Module], float]


@dataclass(frozen=True)
class TrainingTask:
    """What to train, on what, and how.

    `build_module` draws fresh weights from torch's generator; it is seeded first. `build_loss`
    gives every restart a loss of its own, with the same first weights.
    """

    build_module: Callable[[], nn.Module]
    build_loss: Callable[[], nn.Module]
    inputs: Inputs
    supervision: Supervision
    config: TrainingConfig
    query_inputs: Inputs | None = None  # of logged queries; None if every row is a query
    augment: Augment = leave_rows
    score: Score | None = None
    checkpoints: Checkpoints = field(default_factory=lambda: Checkpoints(None))
    log: TrainingLog = field(default_factory=lambda: TrainingLog(None))
    progress: ProgressCallback = lambda record: None
    method_name: str = "the method"  # for errors


@dataclass(frozen=True)
class BestWeights:
    """The best weights of a restart, or of all restarts so far."""

    score: float | None = None
    epoch: int = 0
    restart: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Everything but the weights."""
        return {"score": self.score, "epoch": self.epoch, "restart": self.restart}


@dataclass(frozen=True)
class TrainingResult:
    """The trained module, how its weights were chosen, and the epochs of all restarts."""

    module: nn.Module
    best: BestWeights
    history: list[dict[str, Any]]
    n_resumed: int  # epochs that came from a checkpoint


def run_training(task: TrainingTask) -> TrainingResult:
    """Train all restarts, from the checkpoint if there is one, and choose the best."""
    _check_task(task)
    saved = task.checkpoints.load()
    parallel.wait_for_all()  # nobody writes before everybody has read
    trainer = _Trainer(task, *(saved or ({}, {})))
    with own_generators():
        for restart in range(trainer.first_restart, task.config.n_restarts):
            trainer.train_restart(restart)
        module = trainer.build_best_module()
    return TrainingResult(module, trainer.best, trainer.history, trainer.n_resumed)


class _Trainer:
    """The state of a task between epochs."""

    def __init__(
        self, task: TrainingTask, tensors: dict[str, Tensor], facts: dict[str, Any]
    ) -> None:
        self.task, self.saved_tensors, self.saved_facts = task, tensors, facts
        self.first_restart: int = facts.get("restart", 0)
        self.history: list[dict[str, Any]] = facts.get("history", [])
        self.n_resumed = len(self.history)
        self.best = _read_best("best", tensors, facts)
        self.best_of_restart, self.n_stale_scores = BestWeights(), 0
        if parallel.rank() == 0:
            task.checkpoints.sweep()
            task.log.start(self.history)
        for record in self.history:
            task.progress(record)

    def train_restart(self, restart: int) -> None:
        """Train one restart to its end and see whether it is the best so far."""
        run = self._start_run(restart)
        epochs, started = self.task.config.epochs, time.perf_counter()
        while run.epoch < epochs and not self._is_stale():
            record: dict[str, Any] = {"restart": restart, "epoch": run.epoch + 1}
            record |= run.train_epoch(restart)
            record["score"] = self._score_epoch(run, restart)
            now = time.perf_counter()
            record["seconds"], started = round(now - started, 4), now
            self._record_epoch(record)
            is_last = run.epoch == epochs or self._is_stale()
            if is_last or self.task.checkpoints.is_due(run.epoch):
                self._save_checkpoint(run, restart)
        self._compare_restarts(run, restart)

    def build_best_module(self) -> nn.Module:
        """The module with the best weights, in evaluation mode."""
        module = self.task.build_module().to(self.task.inputs.device)
        module.load_state_dict(self.best.weights)
        return module.eval()

    def _start_run(self, restart: int) -> TrainingRun:
        """A run with fresh weights, or the one that the checkpoint holds."""
        task = self.task
        rng = np.random.default_rng([task.config.seed, restart, 0])
        torch.manual_seed(int(rng.integers(1 << 62)))
        device = task.inputs.device
        module, loss = task.build_module().to(device), task.build_loss().to(device)
        parallel.copy_from_first(module)
        parallel.copy_from_first(loss)
        run = TrainingRun(
            module,
            loss,
            task.inputs,
            task.supervision,
            task.config,
            task.method_name,
            task.query_inputs,
            task.augment,
        )
        self.best_of_restart, self.n_stale_scores = BestWeights(restart=restart), 0
        if self.saved_tensors:
            tensors, facts = self.saved_tensors, self.saved_facts
            run.restore(tensors, facts)
            self.best_of_restart = _read_best("best_of_restart", tensors, facts)
            self.n_stale_scores = facts["n_stale_scores"]
            self.saved_tensors = {}
        return run

    def _score_epoch(self, run: TrainingRun, restart: int) -> float | None:
        """Score the epoch if it is due, and keep its weights if they are the best."""
        score, config = self.task.score, self.task.config
        is_due = run.epoch % config.score_every == 0 or run.epoch == config.epochs
        if score is None or not is_due:
            return None
        with run.evaluation_weights():
            value = parallel.agree(_check_score(score(run.module)))
            if self.best_of_restart.score is None or value > self.best_of_restart.score:
                self.best_of_restart = BestWeights(value, run.epoch, restart, run.copy_weights())
                self.n_stale_scores = 0
            else:
                self.n_stale_scores += 1
        return value

    def _is_stale(self) -> bool:
        patience = self.task.config.patience
        return patience is not None and self.n_stale_scores >= patience

    def _record_epoch(self, record: dict[str, Any]) -> None:
        self.history.append(record)
        if parallel.rank() == 0:
            self.task.log.write(record)
            self.task.progress(record)

    def _save_checkpoint(self, run: TrainingRun, restart: int) -> None:
        if parallel.rank() > 0:
            return
        tensors, facts = run.state()
        for name, best in (("best_of_restart", self.best_of_restart), ("best", self.best)):
            tensors |= {f"{name}.{key}": value for key, value in best.weights.items()}
            facts[name] = best.to_json()
        facts |= {
            "restart": restart,
            "n_stale_scores": self.n_stale_scores,
            "history": self.history,
            "seed": self.task.config.seed,
        }
        self.task.checkpoints.save(tensors, facts)

    def _compare_restarts(self, run: TrainingRun, restart: int) -> None:
        if self.task.score is None:
            with run.evaluation_weights():
                loss = self.history[-1]["loss"]
                self.best_of_restart = BestWeights(-loss, run.epoch, restart, run.copy_weights())
        assert self.best_of_restart.score is not None  # noqa: S101
        if self.best.score is None or self.best_of_restart.score > self.best.score:
            self.best = self.best_of_restart


def _read_best(name: str, tensors: dict[str, Tensor], facts: dict[str, Any]) -> BestWeights:
    return BestWeights(**facts.get(name, {}), weights=select_prefix(name, tensors))


def _check_score(score: Any) -> float:
    try:
        value = float(score)
    except (TypeError, ValueError):
        raise InputError(f"scoring must return a number, got {_check.describe(score)}") from None
    if not np.isfinite(value):
        raise InputError(f"scoring must return a finite number, got {value}")
    return value


def _check_task(task: TrainingTask) -> None:
    config, classes = task.config, task.supervision.classes
    needs_classes = {
        "batches='balanced'": config.batches == "balanced",
        "mixup": config.mixup > 0,
    }
    for name, is_needed in needs_classes.items():
        if is_needed and classes is None:
            raise InputError(f"{name} needs class labels as y, got y as {task.supervision.kind}")
    if config.gallery == "memory" and parallel.world_size() > 1:
        raise InputError("gallery must be 'batch' when several processes train together")
