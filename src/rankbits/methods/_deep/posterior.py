"""Class posteriors in front of the bits: what a few classifiers believe, and honest lists from it.

A training row is always close to itself, so codes trained on rows and labels alone learn to be
sure. The rows of a database are not: ranking them well means knowing how doubtful each one is.
So, for class labels, the encoder first learns the classes by cross-entropy, on rows with noise
added, and the bits then read its posterior. They are trained by the ranking objective on noisy
rows whose labels are drawn from the posterior itself, at the temperature that rows held out of
each classifier ask for: lists with as many doubtful and wrong items as new data will have.

Notation: K members, C classes, x rows of norm sqrt(d), T the factor of the logits that labels are
drawn with.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits import affinity
from rankbits.methods._deep.batches import Batch
from rankbits.methods._deep.checkpoint import Checkpoints, fingerprint
from rankbits.methods._deep.layers import Posterior, beliefs, of_one_norm
from rankbits.methods._deep.plan import Plan
from rankbits.methods._deep.trainer import Task, train
from rankbits.methods._supervision import Supervision

NOISES = (0.15, 0.35, 0.7)
STAGES = (*(f"pilot-{noise}" for noise in NOISES), "posterior")  # runs before that of the bits
_FOLDS = 10
_FACTORS = np.geomspace(0.3, 1.5, 33)
_BATCH = 250
_STEPS, _ROWS = 800, 5000  # so many steps for so many rows, growing with their root
_LEAST_STEPS = 300
_PILOT_STEPS, _PILOT_WIDTH = 400, 256
_POOL, _POOL_LEAST, _TIMES = 60_000, 20_000, 12
_WIDTHS = (128, 1024)
_BLOCK = 4096


@dataclass
class Pool:
    """Noisy rows as the bits see them, and the chances of their classes."""

    inputs: Tensor  # (n, 2 C)
    chances: np.ndarray  # (n, C) float32


class DrawnClasses(Supervision):
    """Classes drawn from their chances, anew every epoch: a label is never there to be learned."""

    def __init__(self, chances: np.ndarray, classes: np.ndarray) -> None:
        rows = np.arange(len(classes))
        super().__init__("classes", affinity.classes(classes, classes), rows, classes)
        self.chances = chances

    def redrawn(self, rng: np.random.Generator) -> "DrawnClasses":
        """The same rows with classes of a new draw."""
        return DrawnClasses(self.chances, _draw(self.chances, rng))

    @staticmethod
    def first(chances: np.ndarray) -> "DrawnClasses":
        """The likeliest classes, until the first draw."""
        return DrawnClasses(chances, chances.argmax(axis=1))


def _draw(chances: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    limits = chances.cumsum(axis=1)
    marks = rng.random((len(chances), 1), dtype=np.float32) * limits[:, -1:]
    drawn: np.ndarray = (marks > limits[:, :-1]).sum(axis=1)
    return drawn


class Noisy(nn.Module):
    """The posterior while it is trained: logits (n, K, C), each member with its own noise."""

    def __init__(self, posterior: Posterior, noise: float) -> None:
        super().__init__()
        self.posterior, self.noise = posterior, noise

    def forward(self, x: Tensor) -> Tensor:
        rows, noise = of_one_norm(x), self.noise if self.training else 0.0
        logits = [m(rows + noise * torch.randn_like(rows)) for m in self.posterior.members]
        return torch.stack(logits, dim=1)


class MembersLoss(nn.Module):
    """Mean cross-entropy of the members; rows of fold k are kept from member k."""

    def __init__(self, folds: np.ndarray) -> None:
        super().__init__()
        self.folds = folds

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        assert batch.classes is not None  # noqa: S101
        fold = torch.from_numpy(self.folds[batch.rows]).to(logits.device)
        total = logits.sum() * 0.0
        for k, mine in enumerate(logits.unbind(1)):
            seen = fold != k
            if bool(seen.any()):
                total = total + functional.cross_entropy(mine[seen], batch.classes[seen])
        return total / logits.shape[1]


def folds_of(n: int, seed: int) -> np.ndarray:
    """A fold for each row: of ten equal parts, or fewer where rows are few."""
    rng = np.random.default_rng([seed, 0xF01D])
    return rng.permutation(n) % min(_FOLDS, n)


def plan_of(n: int, seed: int, steps: int | None = None) -> Plan:
    """How the classifiers are trained: by steps rather than epochs, so that time stays bounded."""
    wanted = steps or max(_LEAST_STEPS, round(_STEPS * math.sqrt(n / _ROWS)))
    return Plan(
        n_epochs=max(1, round(wanted * min(_BATCH, n) / n)),
        batch_size=min(_BATCH, n),
        learning_rate=2e-3,
        weight_decay=0.2,
        schedule="one-cycle",
        ema=0.99,
        seed=seed,
    )


@torch.no_grad()
def held_out_logits(posterior: Posterior, rows: Tensor, folds: np.ndarray) -> tuple[Tensor, Tensor]:
    """Logits of the rows that one member did not see, by that member, and which rows they are."""
    fold = torch.from_numpy(folds).to(rows.device)
    found, where = [], []
    for k in range(len(posterior.members)):
        mine = torch.nonzero(fold == k)[:, 0]
        found.append(posterior.members[k](of_one_norm(rows[mine])))
        where.append(mine)
    return torch.cat(found), torch.cat(where)


def temper(logits: Tensor, classes: Tensor) -> tuple[float, float]:
    """The factor of the logits with the least cross-entropy, and that cross-entropy."""
    losses = [float(functional.cross_entropy(t * logits, classes)) for t in _FACTORS.tolist()]
    best = int(np.argmin(losses))
    return float(_FACTORS[best]), losses[best]


def pool_size(n: int) -> int:
    """Rows of the pool of n training rows: each of them equally often."""
    wanted = max(_POOL_LEAST, min(_POOL, _TIMES * n))
    return n * max(1, -(-wanted // n))


def width_of(n: int) -> int:
    """Width of a classifier of n rows: the power of two nearest to a quarter of them, in bounds."""
    low, high = _WIDTHS
    return int(min(high, max(low, 2 ** round(math.log2(max(n, 4) / 4)))))


@torch.no_grad()
def draw_pool(posterior: Posterior, rows: Tensor, noise: float, factor: float, seed: int) -> Pool:
    """Rows with noise, again and again, and their tempered posteriors."""
    generator = torch.Generator().manual_seed(seed)
    inputs, chances = [], []
    for _ in range(pool_size(len(rows)) // len(rows)):
        for start in range(0, len(rows), _BLOCK):
            x = of_one_norm(rows[start : start + _BLOCK])
            x = x + noise * torch.randn(x.shape, generator=generator).to(x.device)
            logits = posterior.logits(x).mean(1)
            inputs.append(beliefs(logits))
            chances.append(functional.softmax(factor * logits, dim=1).cpu())
    return Pool(torch.cat(inputs), torch.cat(chances).numpy())


@dataclass
class Learned:
    """A trained posterior, the lists drawn from it, and what was found on the way."""

    posterior: Posterior
    pool: Pool
    notes: dict[str, Any]


_KEPT: dict[str, Learned] = {}  # that of the last call, by what it depends on


def learn_posterior(
    make: Callable[[int, int], Posterior],
    rows: Tensor,
    supervision: Supervision,
    seed: int,
    checkpoints: Callable[[str], Checkpoints],
) -> Learned:
    """Choose the noise by short runs, train the classifiers, and draw lists from them.

    `make(n_members, width)` builds a posterior with fresh weights, 0 standing for what is wanted;
    `checkpoints(name)` says where a run of that name keeps its state. What the last call has found
    is kept: codes of several lengths, or of several methods, read the same posterior.
    """
    assert supervision.classes is not None  # noqa: S101
    with torch.device("meta"):  # shapes only: no random numbers are drawn
        shape = [list(weight.shape) for weight in make(0, 0).state_dict().values()]
    facts = {"seed": seed, "shape": shape, "threads": torch.get_num_threads()}
    key = fingerprint(facts, [rows.cpu().numpy(), supervision.classes])
    if key not in _KEPT:
        found = _learned(make, rows, supervision, seed, checkpoints)
        _KEPT.clear()
        _KEPT[key] = found
    return _KEPT[key]


def _learned(
    make: Callable[[int, int], Posterior],
    rows: Tensor,
    supervision: Supervision,
    seed: int,
    checkpoints: Callable[[str], Checkpoints],
) -> Learned:
    assert supervision.classes is not None  # noqa: S101
    started = time.perf_counter()
    classes = torch.from_numpy(supervision.classes).to(rows.device)
    folds = folds_of(len(rows), seed)

    def trained(
        noise: float, plan: Plan, name: str, n_members: int = 0, width: int = 0
    ) -> tuple[Posterior, float, float]:
        task = Task(
            make_module=lambda: Noisy(make(n_members, width), noise),
            make_loss=lambda: MembersLoss(folds),
            inputs=rows,
            supervision=supervision,
            plan=plan,
            checkpoints=checkpoints(name),
            name="the class posterior",
        )
        module = train(task).module
        assert isinstance(module, Noisy)  # noqa: S101
        logits, where = held_out_logits(module.posterior, rows, folds)
        return module.posterior, *temper(logits, classes[where])

    pilot = plan_of(len(rows), seed, _PILOT_STEPS)
    losses = {n: trained(n, pilot, f"pilot-{n}", 1, _PILOT_WIDTH)[2] for n in NOISES}
    noise = min(losses, key=lambda n: losses[n])
    plan = plan_of(len(rows), seed)
    posterior, factor, loss = trained(noise, plan, "posterior")
    pool = draw_pool(posterior, rows, noise, factor, seed)
    told = notes(noise, factor, loss, plan, losses)
    return Learned(posterior, pool, {**told, "seconds": round(time.perf_counter() - started, 3)})


def notes(
    noise: float, factor: float, loss: float, plan: Plan, pilots: dict[float, float]
) -> dict[str, Any]:
    """What was found, as JSON values."""
    return {
        "noise": noise,
        "pilots": {str(noise): round(loss, 5) for noise, loss in pilots.items()},
        "factor": round(factor, 4),
        "held_out_loss": round(loss, 5),
        "plan": plan.to_json(),
    }
