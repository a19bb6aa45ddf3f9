"""The trainer: restarts, validation, early stopping, checkpoints and log around a run.

The loss is a torch module with `forward(logits, batch) -> scalar`; it may own parameters. The score
is a callback that takes the encoder in evaluation mode and returns a number, higher being better.
With a score the weights of the best epoch are kept, and of several restarts the best one; without,
the last epoch's, and the restart with the least training loss.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankbits import _check
from rankbits.errors import InputError
from rankbits.methods._deep import parallel
from rankbits.methods._deep.checkpoint import Checkpoints
from rankbits.methods._deep.journal import Journal, Progress
from rankbits.methods._deep.plan import Plan
from rankbits.methods._deep.run import Run, below
from rankbits.methods._supervision import Supervision

DEVICES = ("auto", "cpu", "cuda", "mps")
Score = Callable[[nn.Module], float]


@dataclass
class Task:
    """What to train, on what: all a run needs beside its plan.

    `make_module` and `make_loss` draw fresh weights from torch's generator, which is seeded first.
    """

    make_module: Callable[[], nn.Module]
    make_loss: Callable[[], nn.Module]
    inputs: Tensor
    supervision: Supervision
    plan: Plan
    score: Callable[[nn.Module], float] | None = None
    checkpoints: Checkpoints = field(default_factory=lambda: Checkpoints(None))
    journal: Journal = field(default_factory=lambda: Journal(None))
    progress: Progress = lambda record: None
    name: str = "the method"  # whose loss it is, for errors


@dataclass
class Standing:
    """The best weights of a restart, or of all restarts so far."""

    score: float | None = None
    epoch: int = 0
    restart: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Everything but the weights."""
        return {"score": self.score, "epoch": self.epoch, "restart": self.restart}


@dataclass
class Outcome:
    """What training gave: the chosen module, its standing, and the epochs of all restarts."""

    module: nn.Module
    standing: Standing
    history: list[dict[str, Any]]
    n_resumed: int  # epochs that came from a checkpoint


def train(task: Task) -> Outcome:
    """Train all restarts, from the checkpoint if there is one, and choose."""
    _check_task(task)
    saved = task.checkpoints.load()
    parallel.wait_for_all()  # nobody writes before everybody has read
    trainer = _Trainer(task, *(saved or ({}, {})))
    with _own_generators(task.inputs.device):
        for restart in range(trainer.first, task.plan.n_restarts):
            trainer.train_restart(restart)
        module = trainer.finish()
    return Outcome(module, trainer.chosen, trainer.history, trainer.n_resumed)


class _Trainer:
    """The state of a task between epochs."""

    def __init__(self, task: Task, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.task, self.tensors, self.facts = task, tensors, facts
        self.first: int = facts.get("restart", 0)
        self.history: list[dict[str, Any]] = facts.get("history", [])
        self.n_resumed = len(self.history)
        self.chosen = Standing(**facts.get("chosen", {}), weights=below("chosen", tensors))
        self.best, self.n_stale = Standing(), 0
        if parallel.rank() == 0:
            task.checkpoints.sweep()
            task.journal.start(self.history)
        for record in self.history:
            task.progress(record)

    def train_restart(self, restart: int) -> None:
        """Train one restart to its end and see whether it is the best so far."""
        run = self._new_run(restart)
        plan, started = self.task.plan, time.perf_counter()
        while run.epoch < plan.n_epochs and not self._is_stale():
            record: dict[str, Any] = {"restart": restart, "epoch": run.epoch + 1}
            record |= run.train_epoch(restart)
            record["score"] = self._judge(run, restart)
            now = time.perf_counter()
            record["seconds"], started = round(now - started, 4), now
            self._note(record)
            if self.task.checkpoints.is_due(run.epoch) or self._is_last(run):
                self._save(run, restart)
        self._choose(run, restart)

    def finish(self) -> nn.Module:
        """The module with the chosen weights, in evaluation mode."""
        module = self.task.make_module().to(self.task.inputs.device)
        module.load_state_dict(self.chosen.weights)
        return module.eval()

    def _new_run(self, restart: int) -> Run:
        task = self.task
        rng = np.random.default_rng([task.plan.seed, restart, 0])
        torch.manual_seed(int(rng.integers(1 << 62)))
        device = task.inputs.device
        module, loss = task.make_module().to(device), task.make_loss().to(device)
        parallel.copy_from_first(module)
        parallel.copy_from_first(loss)
        if task.plan.mix_across and not getattr(loss, "mixes_classes", False):
            raise InputError("mix_across must be False: this loss has no levels between classes")
        run = Run(module, loss, task.inputs, task.supervision, task.plan, task.name)
        self.best, self.n_stale = Standing(restart=restart), 0
        if self.tensors:
            run.restore(self.tensors, self.facts)
            self.best = Standing(**self.facts["best"], weights=below("best", self.tensors))
            self.n_stale = self.facts["n_stale"]
            self.tensors = {}
        return run

    def _judge(self, run: Run, restart: int) -> float | None:
        """Score the epoch if it is due, and keep its weights if they are the best."""
        score, plan = self.task.score, self.task.plan
        due = run.epoch % plan.score_every == 0 or run.epoch == plan.n_epochs
        if score is None or not due:
            return None
        with run.judged():
            value = parallel.agree(_number(score(run.module)))
            if self.best.score is None or value > self.best.score:
                self.best = Standing(value, run.epoch, restart, run.weights())
                self.n_stale = 0
            else:
                self.n_stale += 1
        return value

    def _is_stale(self) -> bool:
        patience = self.task.plan.patience
        return patience is not None and self.n_stale >= patience

    def _is_last(self, run: Run) -> bool:
        return run.epoch == self.task.plan.n_epochs or self._is_stale()

    def _note(self, record: dict[str, Any]) -> None:
        self.history.append(record)
        if parallel.rank() == 0:
            self.task.journal.write(record)
            self.task.progress(record)

    def _save(self, run: Run, restart: int) -> None:
        if parallel.rank() > 0:
            return
        tensors, facts = run.state()
        for name, standing in (("best", self.best), ("chosen", self.chosen)):
            tensors |= {f"{name}.{key}": value for key, value in standing.weights.items()}
            facts[name] = standing.to_json()
        facts |= {"restart": restart, "n_stale": self.n_stale, "history": self.history}
        self.task.checkpoints.save(tensors, {**facts, "seed": self.task.plan.seed})

    def _choose(self, run: Run, restart: int) -> None:
        if self.task.score is None:
            with run.judged():
                loss = self.history[-1]["loss"]
                self.best = Standing(-loss, run.epoch, restart, run.weights())
        assert self.best.score is not None  # noqa: S101
        if self.chosen.score is None or self.best.score > self.chosen.score:
            self.chosen = self.best


def device_of(name: str) -> torch.device:
    """The device of that name; "auto" takes CUDA, then MPS, then the processor."""
    _check.choice("device", name, DEVICES)
    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next((device for device, there in has.items() if there), "cpu")
    if not has.get(name, True):
        raise InputError(f"device must be there to be used, {name} is not; use device='auto'")
    return torch.device(name)


@contextmanager
def threads(n_threads: int | None) -> Iterator[None]:
    """Let torch use so many threads for the length of a block; None leaves it as it is."""
    if n_threads is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(_check.whole("n_threads", n_threads, 1, 4096))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _own_generators(device: torch.device) -> Iterator[None]:
    """Seed torch as we like, and leave the caller's generators as they were."""
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        yield


def _number(score: Any) -> float:
    try:
        value = float(score)
    except (TypeError, ValueError):
        raise InputError(f"scoring must return a number, got {_check.describe(score)}") from None
    if not np.isfinite(value):
        raise InputError(f"scoring must return a finite number, got {value}")
    return value


def _check_task(task: Task) -> None:
    plan, classes = task.plan, task.supervision.classes
    needs_classes = {
        "batches='balanced'": plan.batches == "balanced",
        "mixup": plan.mixup > 0 and not plan.mix_across,
    }
    for name, needed in needs_classes.items():
        if needed and classes is None:
            raise InputError(f"{name} needs class labels as y, got y as {task.supervision.kind}")
    if plan.gallery == "memory" and parallel.world_size() > 1:
        raise InputError("gallery must be 'batch' when several processes train together")
