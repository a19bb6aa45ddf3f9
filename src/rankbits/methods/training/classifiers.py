"""Classifiers in front of the bits: trained by cross-entropy, a tenth of the rows kept from each.

A classifier is any module from rows to logits. K of them are trained as one module with outputs
(n, K, C); classifier k never learns from the rows of fold k. These rows then say how sure it may
be: they choose the factor of its logits, and how doubtful rows are that it has not seen.

Notation: K classifiers, C classes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits.methods.supervision import Supervision
from rankbits.methods.training.batches import Batch
from rankbits.methods.training.checkpoints import Checkpoints
from rankbits.methods.training.config import TrainingConfig
from rankbits.methods.training.encoders import encode_rows
from rankbits.methods.training.layers import Posterior
from rankbits.methods.training.log import ProgressCallback
from rankbits.methods.training.precision import mixed_precision, use_mixed_precision
from rankbits.methods.training.sample_pool import measure_doubt
from rankbits.methods.training.trainer import TrainingTask, run_training

_N_FOLDS = 10
_FACTORS = np.geomspace(0.3, 1.5, 33)
_SMOOTHED_FACTORS = np.geomspace(0.3, 6.0, 61)  # smoothed labels make logits too small


class Classifiers(nn.Module):
    """Classifiers in training: rows to logits (n, K, C), through what stands before them."""

    def __init__(self, classifiers: Posterior, before: nn.Module | None = None) -> None:
        super().__init__()
        self.before = nn.Identity() if before is None else before
        self.classifiers = classifiers

    def forward(self, x: Tensor) -> Tensor:
        return self.classifiers.logits(self.before(x))


@dataclass(frozen=True)
class ClassifierTask:
    """What classifiers to train, on what, and how."""

    build: Callable[[], Classifiers]  # with fresh weights
    rows: Tensor
    supervision: Supervision
    config: TrainingConfig
    smoothing: float = 0.0  # share of a label that is spread over all classes
    block: int = 4096  # rows that are classified at a time
    checkpoints: Checkpoints = field(default_factory=lambda: Checkpoints(None))
    progress: ProgressCallback = lambda record: None


@dataclass(frozen=True)
class TrainedClassifiers:
    """Classifiers, and how sure they are about rows they did not see."""

    module: Classifiers
    folds: np.ndarray  # of each row: it was kept from the classifier of that number
    factor: float
    held_out_loss: float
    held_out_accuracy: float
    doubt: float  # about rows that were kept from the classifiers
    history: list[dict[str, Any]]


class ClassifiersLoss(nn.Module):
    """Mean cross-entropy of the classifiers; rows of fold k are kept from classifier k."""

    def __init__(self, folds: np.ndarray, smoothing: float = 0.0) -> None:
        super().__init__()
        self.folds, self.smoothing = folds, smoothing

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        assert batch.classes is not None  # noqa: S101
        fold = torch.from_numpy(self.folds[batch.rows]).to(logits.device)
        total = logits.sum() * 0.0
        for k, classifier_logits in enumerate(logits.unbind(1)):
            seen = fold != k
            if bool(seen.any()):
                total = total + functional.cross_entropy(
                    classifier_logits[seen], batch.classes[seen], label_smoothing=self.smoothing
                )
        return total / logits.shape[1]


def train_classifiers(task: ClassifierTask) -> TrainedClassifiers:
    """Train the classifiers and ask them about the rows that were kept from them."""
    assert task.supervision.classes is not None  # noqa: S101
    folds = draw_folds(len(task.rows), task.config.seed)
    result = run_training(
        TrainingTask(
            build_module=task.build,
            build_loss=lambda: ClassifiersLoss(folds, task.smoothing),
            inputs=task.rows,
            supervision=task.supervision,
            config=task.config,
            checkpoints=task.checkpoints,
            progress=task.progress,
            method_name="the class posterior",
        )
    )
    module = result.module
    assert isinstance(module, Classifiers)  # noqa: S101
    with mixed_precision(use_mixed_precision(task.config.precision)):
        logits, positions = held_out_logits(module, task.rows, folds, task.block)
    classes = torch.from_numpy(task.supervision.classes).to(logits.device)[positions]
    factor, loss = choose_factor(logits, classes, is_smoothed=task.smoothing > 0)
    return TrainedClassifiers(
        module=module,
        folds=folds,
        factor=factor,
        held_out_loss=loss,
        held_out_accuracy=float((logits.argmax(1) == classes).float().mean()),
        doubt=measure_doubt(logits, factor),
        history=result.history,
    )


def draw_folds(n_rows: int, seed: int) -> np.ndarray:
    """A fold for each row: of ten equal parts, or fewer where rows are few."""
    rng = np.random.default_rng([seed, 0xF01D])
    return rng.permutation(n_rows) % min(_N_FOLDS, n_rows)


def held_out_logits(
    module: Classifiers, rows: Tensor, folds: np.ndarray, block: int = 4096
) -> tuple[Tensor, Tensor]:
    """Logits of the rows that a classifier did not see, by that classifier, and their positions."""
    fold = torch.from_numpy(folds).to(rows.device)
    logits, positions = [], []
    for k in range(len(module.classifiers.members)):
        unseen = torch.nonzero(fold == k)[:, 0]
        logits.append(encode_rows(module, rows[unseen], block)[:, k].float())
        positions.append(unseen)
    return torch.cat(logits), torch.cat(positions)


def choose_factor(
    logits: Tensor, classes: Tensor, *, is_smoothed: bool = False
) -> tuple[float, float]:
    """The factor of the logits with the smallest cross-entropy, and that cross-entropy."""
    factors = _SMOOTHED_FACTORS if is_smoothed else _FACTORS
    losses = [float(functional.cross_entropy(t * logits, classes)) for t in factors.tolist()]
    best = int(np.argmin(losses))
    return float(factors[best]), losses[best]
