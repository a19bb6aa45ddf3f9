"""Classifiers in front of the bits: trained by cross-entropy, a tenth of the rows kept from each.

A classifier is any module from rows to logits. K of them are trained as one module with outputs
(n, K, C). The rows that are kept from a classifier say how sure it may be: they choose the factor
of its logits, and tell how doubtful rows are that it has not seen.

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
from rankbits.methods.training.devices import mixed_precision, use_mixed_precision
from rankbits.methods.training.encoders import encode_rows
from rankbits.methods.training.inputs import Augment, Inputs, leave_rows
from rankbits.methods.training.layers import Posterior
from rankbits.methods.training.log import ProgressCallback
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
    rows: Inputs
    supervision: Supervision
    is_unseen: np.ndarray  # (n, K): which rows are kept from each classifier
    config: TrainingConfig
    targets: np.ndarray | None = None  # probabilities (n, C) of the classes; None: those of y
    smoothing: float = 0.0  # share of a label that is spread over all classes
    block: int = 4096  # rows that are classified at a time
    augment: Augment = leave_rows
    checkpoints: Checkpoints = field(default_factory=lambda: Checkpoints(None))
    progress: ProgressCallback = lambda record: None
    name: str = "the class posterior"  # for errors


@dataclass(frozen=True)
class TrainedClassifiers:
    """Classifiers, and how sure they are about rows they did not see."""

    module: Classifiers
    factor: float
    held_out_loss: float
    held_out_accuracy: float
    doubt: float  # about rows that were kept from the classifiers
    history: list[dict[str, Any]]


class ClassifiersLoss(nn.Module):
    """Mean cross-entropy of the classifiers.

    `targets` are the classes (n,) or their probabilities (n, C); `is_unseen` (n, K) says what is
    kept from each classifier. Rows that are mixed have the classes of both, by their shares.
    """

    def __init__(self, targets: np.ndarray, is_unseen: np.ndarray, smoothing: float = 0.0) -> None:
        super().__init__()
        self.targets, self.is_unseen, self.smoothing = targets, is_unseen, smoothing

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        targets = self._look_up_targets(batch, logits.shape[2]).to(logits.device)
        is_seen = torch.from_numpy(self._find_seen(batch)).to(logits.device)
        total = logits.sum() * 0.0
        for classifier_logits, seen in zip(logits.unbind(1), is_seen.unbind(1), strict=True):
            if bool(seen.any()):
                total = total + functional.cross_entropy(
                    classifier_logits[seen], targets[seen], label_smoothing=self.smoothing
                )
        return total / logits.shape[1]

    def _look_up_targets(self, batch: Batch, n_classes: int) -> Tensor:
        """Classes (M,) of the rows of a batch, or probabilities (M, C)."""
        if batch.mixture is None:
            return torch.from_numpy(self.targets[batch.rows])
        weights = torch.from_numpy(batch.mixture.weights).float()[:, None]
        own, others = (
            self._look_up_probabilities(rows, n_classes)
            for rows in (batch.rows, batch.mixture.partners)
        )
        return weights * own + (1 - weights) * others

    def _look_up_probabilities(self, rows: np.ndarray, n_classes: int) -> Tensor:
        targets = torch.from_numpy(self.targets[rows])
        return functional.one_hot(targets, n_classes).float() if targets.dim() == 1 else targets

    def _find_seen(self, batch: Batch) -> np.ndarray:
        is_unseen = self.is_unseen[batch.rows]
        if batch.mixture is not None:
            is_unseen = is_unseen | self.is_unseen[batch.mixture.partners]
        return np.asarray(~is_unseen)


def train_classifiers(task: ClassifierTask) -> TrainedClassifiers:
    """Train the classifiers and ask them about the rows that were kept from them."""
    classes = task.supervision.classes
    assert classes is not None  # noqa: S101
    targets = classes if task.targets is None else task.targets
    result = run_training(
        TrainingTask(
            build_module=task.build,
            build_loss=lambda: ClassifiersLoss(targets, task.is_unseen, task.smoothing),
            inputs=task.rows,
            supervision=task.supervision,
            config=task.config,
            augment=task.augment,
            checkpoints=task.checkpoints,
            progress=task.progress,
            method_name=task.name,
        )
    )
    module = result.module
    assert isinstance(module, Classifiers)  # noqa: S101
    with mixed_precision(use_mixed_precision(task.config.precision)):
        logits, positions = held_out_logits(module, task.rows, task.is_unseen, task.block)
    truth = torch.from_numpy(classes).to(logits.device)[positions]
    factor, loss = choose_factor(logits, truth, is_smoothed=task.smoothing > 0)
    return TrainedClassifiers(
        module=module,
        factor=factor,
        held_out_loss=loss,
        held_out_accuracy=float((logits.argmax(1) == truth).float().mean()),
        doubt=measure_doubt(logits, factor),
        history=result.history,
    )


def draw_unseen(n_rows: int, n_classifiers: int, seed: int) -> np.ndarray:
    """Which rows are kept from each classifier, (n, K): a tenth, or more where rows are few."""
    rng, n_folds = np.random.default_rng([seed, 0xF01D]), min(_N_FOLDS, n_rows)
    folds = rng.permutation(n_rows) % n_folds
    return np.asarray(folds[:, None] == np.arange(n_classifiers) % n_folds)


def held_out_logits(
    module: Classifiers, rows: Inputs, is_unseen: np.ndarray, block: int = 4096
) -> tuple[Tensor, Tensor]:
    """Logits of the rows that a classifier did not see, by that classifier, and their positions."""
    logits, positions = [], []
    for k in range(is_unseen.shape[1]):
        unseen = torch.from_numpy(np.flatnonzero(is_unseen[:, k])).to(rows.device)
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
