"""Class posteriors in front of the bits: what a few classifiers believe, and honest lists from it.

A training row is always close to itself, so codes trained on rows and labels alone learn to be
sure. The rows of a database are not: ranking them well means knowing how doubtful each one is.
So, for class labels, the encoder first learns the classes by cross-entropy, on rows with noise
added, and the bits then read its posterior. They are trained by the ranking objective on noisy
rows whose labels are drawn from the posterior itself. Temperature and noise are those at which
labels and doubts are as for rows held out of each classifier: lists with as many doubtful and wrong
items as new data will have.

Notation: K classifiers, C classes, x rows of norm sqrt(d), T the factor of the logits that labels
are drawn with.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits.methods.supervision import Supervision
from rankbits.methods.training.batches import Batch
from rankbits.methods.training.checkpoints import Checkpoints, compute_fingerprint
from rankbits.methods.training.config import TrainingConfig, common_config
from rankbits.methods.training.layers import ClassPosterior, scale_to_one_norm
from rankbits.methods.training.posterior_cache import PosteriorCache
from rankbits.methods.training.sample_pool import (
    SamplePool,
    draw_pool,
    match_doubt,
    measure_doubt,
)
from rankbits.methods.training.trainer import TrainingTask, run_training

NOISES = (0.15, 0.35, 0.7)
STAGES = (*(f"pilot-{noise}" for noise in NOISES), "posterior")  # trainings before that of the bits
_N_FOLDS = 10
_FACTORS = np.geomspace(0.3, 1.5, 33)
_BATCH_SIZE = 250
_N_STEPS, _N_ROWS = 800, 5000  # so many steps for so many rows, growing with their square root
_FEWEST_STEPS = 300
_PILOT_STEPS, _PILOT_WIDTH = 400, 256
_WIDTHS = (128, 1024)


@dataclass(frozen=True)
class PosteriorShape:
    """The sizes of the classifiers."""

    n_features: int
    n_classes: int
    width: int
    n_classifiers: int

    def build(self) -> ClassPosterior:
        """Classifiers with fresh weights."""
        return ClassPosterior(self.n_features, self.n_classes, self.width, self.n_classifiers)


@dataclass(frozen=True)
class TrainedPosterior:
    """Trained classifiers, the rows drawn for the bits, and how both were chosen."""

    classifiers: ClassPosterior
    pool: SamplePool
    report: dict[str, Any]


@dataclass(frozen=True)
class _Candidate:
    """Classifiers trained with some noise, and how sure they are about rows they did not see."""

    classifiers: ClassPosterior
    factor: float
    held_out_loss: float
    doubt: float  # about those rows


class NoisyPosterior(nn.Module):
    """The classifiers in training: logits (n, K, C), each classifier with noise of its own."""

    def __init__(self, classifiers: ClassPosterior, noise: float) -> None:
        super().__init__()
        self.classifiers, self.noise = classifiers, noise

    def forward(self, x: Tensor) -> Tensor:
        rows, noise = scale_to_one_norm(x), self.noise if self.training else 0.0
        members = self.classifiers.members
        return torch.stack([m(rows + noise * torch.randn_like(rows)) for m in members], dim=1)


class ClassifiersLoss(nn.Module):
    """Mean cross-entropy of the classifiers; `is_unseen` (n, K) says what is kept from each."""

    def __init__(self, is_unseen: np.ndarray) -> None:
        super().__init__()
        self.is_unseen = is_unseen

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        assert batch.classes is not None  # noqa: S101
        is_seen = torch.from_numpy(~self.is_unseen[batch.rows]).to(logits.device)
        total = logits.sum() * 0.0
        for classifier_logits, seen in zip(logits.unbind(1), is_seen.unbind(1), strict=True):
            if bool(seen.any()):
                total = total + functional.cross_entropy(
                    classifier_logits[seen], batch.classes[seen]
                )
        return total / logits.shape[1]


def learn_posterior(
    shape: PosteriorShape,
    rows: Tensor,
    supervision: Supervision,
    seed: int,
    checkpoints: Callable[[str], Checkpoints],
    cache: PosteriorCache | None = None,
    unseen: np.ndarray | None = None,
) -> TrainedPosterior:
    """The classifiers and their pool of rows: those of the cache, or trained now.

    `checkpoints(stage)` says where the training of that stage saves its state. `unseen` are rows
    that what made the rows never saw, such as a tuned backbone: they are kept from all classifiers,
    since it is sure of all others. Otherwise each classifier has unseen rows of its own.
    """
    assert supervision.classes is not None  # noqa: S101
    is_unseen = draw_unseen(len(rows), shape.n_classifiers, seed)
    if unseen is not None:
        is_unseen = np.isin(np.arange(len(rows)), unseen)[:, None].repeat(shape.n_classifiers, 1)
    if cache is None:
        return _train_posterior(shape, rows, supervision, is_unseen, seed, checkpoints)
    facts = {"seed": seed, "threads": torch.get_num_threads(), **asdict(shape)}
    arrays = [rows.cpu().numpy(), supervision.classes, is_unseen]
    fingerprint = compute_fingerprint(facts, arrays)
    posterior: TrainedPosterior | None = cache.get(fingerprint)
    if posterior is None:
        posterior = _train_posterior(shape, rows, supervision, is_unseen, seed, checkpoints)
        cache.put(fingerprint, posterior)
    return posterior


def _train_posterior(
    shape: PosteriorShape,
    rows: Tensor,
    supervision: Supervision,
    is_unseen: np.ndarray,
    seed: int,
    checkpoints: Callable[[str], Checkpoints],
) -> TrainedPosterior:
    """Choose the noise by short trainings, train the classifiers, and draw rows from them."""
    started = time.perf_counter()

    def train(
        stage: str, shape: PosteriorShape, noise: float, config: TrainingConfig
    ) -> _Candidate:
        columns = is_unseen[:, : shape.n_classifiers]
        return _train_classifiers(
            shape, rows, supervision, columns, noise, config, checkpoints(stage)
        )

    pilot_shape = replace(shape, n_classifiers=1, width=_PILOT_WIDTH)
    pilot_config = posterior_config(len(rows), seed, _PILOT_STEPS)
    losses = {
        noise: train(f"pilot-{noise}", pilot_shape, noise, pilot_config).held_out_loss
        for noise in NOISES
    }
    noise = min(losses, key=lambda candidate: losses[candidate])
    config = posterior_config(len(rows), seed)
    final = train("posterior", shape, noise, config)
    largest = match_doubt(final.classifiers, rows, noise, final.factor, final.doubt, seed)
    pool = draw_pool(final.classifiers, rows, (noise, largest), final.factor, seed)
    report = {
        "noise": noise,
        "pilots": {str(candidate): round(loss, 5) for candidate, loss in losses.items()},
        "factor": round(final.factor, 4),
        "held_out_loss": round(final.held_out_loss, 5),
        "doubt": round(final.doubt, 5),
        "pool_noise": [noise, round(largest, 4)],
        "config": config.to_json(),
        "seconds": round(time.perf_counter() - started, 3),
    }
    return TrainedPosterior(final.classifiers, pool, report)


def _train_classifiers(
    shape: PosteriorShape,
    rows: Tensor,
    supervision: Supervision,
    is_unseen: np.ndarray,
    noise: float,
    config: TrainingConfig,
    checkpoints: Checkpoints,
) -> _Candidate:
    assert supervision.classes is not None  # noqa: S101
    task = TrainingTask(
        build_module=lambda: NoisyPosterior(shape.build(), noise),
        build_loss=lambda: ClassifiersLoss(is_unseen),
        inputs=rows,
        supervision=supervision,
        config=config,
        checkpoints=checkpoints,
        method_name="the class posterior",
    )
    module = run_training(task).module
    assert isinstance(module, NoisyPosterior)  # noqa: S101
    logits, positions = held_out_logits(module.classifiers, rows, is_unseen)
    classes = torch.from_numpy(supervision.classes).to(rows.device)
    factor, loss = choose_factor(logits, classes[positions])
    return _Candidate(module.classifiers, factor, loss, measure_doubt(logits, factor))


def posterior_config(n_rows: int, seed: int, n_steps: int | None = None) -> TrainingConfig:
    """How the classifiers are trained: by steps rather than epochs, so that time stays bounded."""
    n_steps = n_steps or max(_FEWEST_STEPS, round(_N_STEPS * math.sqrt(n_rows / _N_ROWS)))
    return common_config(
        epochs=max(1, round(n_steps * min(_BATCH_SIZE, n_rows) / n_rows)),
        batch_size=min(_BATCH_SIZE, n_rows),
        learning_rate=2e-3,
        weight_decay=0.2,
        schedule="one-cycle",
        warm_up=0.0,
        ema=0.99,
        seed=seed,
    )


def draw_unseen(n_rows: int, n_classifiers: int, seed: int) -> np.ndarray:
    """Which rows are kept from each classifier, (n, K): a tenth, or more where rows are few."""
    rng = np.random.default_rng([seed, 0xF01D])
    folds = rng.permutation(n_rows) % min(_N_FOLDS, n_rows)
    return np.asarray(folds[:, None] == np.arange(n_classifiers))


@torch.no_grad()
def held_out_logits(
    classifiers: ClassPosterior, rows: Tensor, is_unseen: np.ndarray
) -> tuple[Tensor, Tensor]:
    """Logits of the rows that a classifier did not see, by that classifier, and their positions."""
    logits, positions = [], []
    for k, classifier in enumerate(classifiers.members):
        unseen = torch.from_numpy(np.flatnonzero(is_unseen[:, k])).to(rows.device)
        logits.append(classifier(scale_to_one_norm(rows[unseen])))
        positions.append(unseen)
    return torch.cat(logits), torch.cat(positions)


def choose_factor(logits: Tensor, classes: Tensor) -> tuple[float, float]:
    """The factor of the logits with the smallest cross-entropy, and that cross-entropy."""
    losses = [float(functional.cross_entropy(t * logits, classes)) for t in _FACTORS.tolist()]
    best = int(np.argmin(losses))
    return float(_FACTORS[best]), losses[best]


def choose_width(n_rows: int) -> int:
    """Width of a classifier of n rows: the power of two nearest to a quarter of them, in bounds."""
    low, high = _WIDTHS
    return int(min(high, max(low, 2 ** round(math.log2(max(n_rows, 4) / 4)))))
