"""Tuning of a backbone to classes, before scales, classifiers and bits of an encoder are learned.

The backbone, or its last blocks, and one linear classifier learn the classes by cross-entropy with
smoothed labels. What follows treats the tuned backbone as it would a frozen one. A tenth of the
rows is kept from it: a network is sure of all pictures that it was tuned on, and only others tell
how doubtful new ones will be.

Where only the last blocks are tuned, the others run once: see `activations`.
"""

import copy
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.methods.supervision import Supervision
from rankbits.methods.training import parallel
from rankbits.methods.training.activations import compute_activations, find_activations
from rankbits.methods.training.backbones import split_backbone
from rankbits.methods.training.checkpoints import Checkpoints, compute_fingerprint
from rankbits.methods.training.classifiers import (
    Classifiers,
    ClassifierTask,
    TrainedClassifiers,
    draw_unseen,
    train_classifiers,
)
from rankbits.methods.training.config import TrainingConfig, common_config
from rankbits.methods.training.encoders import encode_rows, keep_statistics
from rankbits.methods.training.fields import is_auto
from rankbits.methods.training.inputs import Activations, Inputs
from rankbits.methods.training.layers import Dropout, Posterior, Standardize
from rankbits.methods.training.log import progress_bar
from rankbits.methods.training.network_posterior import SMOOTHING
from rankbits.methods.training.parameters import TrainingParameters, count_last_blocks
from rankbits.methods.training.posterior_cache import PosteriorCache

TUNING_STAGE, _FINISHED = "tuning", "tuned"  # folders in that of the checkpoint
_DROPOUT = 0.2
_SCALE_ROWS = 2048  # rows whose features set the scales of the classifier
_BATCH_SIZE, _LEARNING_RATE, _WEIGHT_DECAY, _MIXUP, _SHIFT = 128, 1e-2, 0.05, 0.0, 4
_EPOCHS, _N_ROWS = 20, 5000  # so many epochs for so many rows, fewer by their square root
_FEWEST_EPOCHS, _MOST_EPOCHS = 5, 40
_SAME_VALUES = (  # as in the training of the bits
    "fine_tune",
    "n_views",
    "backbone_rate",
    "tune_statistics",
    "image_size",
    "precision",
    "checkpoint",
    "checkpoint_seconds",
    "resume",
    "verbose",
    "seed",
)


@dataclass(frozen=True)
class TunedBackbone:
    """A backbone that knows the classes, and the training rows that it never saw."""

    backbone: nn.Module
    unseen: np.ndarray  # positions among the training rows, ascending
    report: dict[str, Any]


@dataclass(frozen=True)
class TuningTask:
    """What a backbone is tuned to, and how."""

    images: np.ndarray
    supervision: Supervision  # with classes
    is_unseen: np.ndarray  # (n, 1): which images are kept from the network
    config: TrainingConfig
    device: torch.device
    fingerprint: str  # of data and settings, by which checkpoints know their tuning


class TunedFeatures(nn.Module):
    """Features of a backbone, or of its last blocks, as the classifier reads them in training."""

    def __init__(self, backbone: nn.Module, scales: Standardize, *, keeps_statistics: bool) -> None:
        super().__init__()
        self.backbone, self.scales, self.keeps_statistics = backbone, scales, keeps_statistics
        self.dropout = Dropout(_DROPOUT)

    def train(self, mode: bool = True) -> "TunedFeatures":
        super().train(mode)
        if self.keeps_statistics:
            keep_statistics(self.backbone)
        return self

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.dropout(self.scales(self.backbone(x).float()))
        return features


def tune_backbone(
    backbone: nn.Module,
    images: np.ndarray,
    supervision: Supervision,
    config: TrainingConfig,
    device: torch.device,
    cache: PosteriorCache | None = None,
) -> TunedBackbone:
    """A copy of the backbone that is tuned to the classes; `config` is from `tuning_config`.

    One that was tuned before comes from the cache or from the checkpoint's folder.
    """
    fingerprint = identify_tuning(images, supervision, config)
    tuned: TunedBackbone | None = None if cache is None else cache.get(fingerprint)
    if tuned is None:
        backbone, is_unseen = copy.deepcopy(backbone), draw_unseen(len(images), 1, config.seed)
        task = TuningTask(images, supervision, is_unseen, config, device, fingerprint)
        report = _tune_or_read(backbone, task)
        backbone.requires_grad_(False).eval()
        tuned = TunedBackbone(backbone, np.flatnonzero(is_unseen), report)
    if cache is not None:
        cache.put(fingerprint, tuned)
    return tuned


def _tune_or_read(backbone: nn.Module, task: TuningTask) -> dict[str, Any]:
    """Tune the backbone in place, unless the checkpoint's folder has its weights already."""
    config = task.config
    folder = _stage_folder(config, _FINISHED)
    finished = Checkpoints(folder, task.fingerprint, resume=config.resume)
    saved = finished.load()
    if saved is not None:
        backbone.load_state_dict(saved[0])
        report: dict[str, Any] = saved[1]["report"]
        return report
    report = _tune(backbone, task)
    if parallel.rank() == 0:
        finished.save(backbone.state_dict(), {"report": report, "seed": config.seed})
    find_activations(task.images, config).remove()
    return report


def _tune(backbone: nn.Module, task: TuningTask) -> dict[str, Any]:
    """Tune the backbone in place; returns the report."""
    started = time.perf_counter()
    part, inputs = cut_backbone(backbone, task.images, task.config, task.device)
    if isinstance(inputs, Activations):  # whose views are moved already
        task = replace(task, config=replace(task.config, flip=False, shift=0))
    trained = _train_classifier(part, inputs, task)
    features = trained.module.before
    assert isinstance(features, TunedFeatures)  # noqa: S101
    part.load_state_dict(features.backbone.state_dict())
    return {
        "unseen": int(task.is_unseen.sum()),
        "held_out_accuracy": round(trained.held_out_accuracy, 5),
        "held_out_loss": round(trained.held_out_loss, 5),
        "factor": round(trained.factor, 4),
        "smoothing": SMOOTHING,
        "config": task.config.to_json(),
        "history": trained.history,
        "seconds": round(time.perf_counter() - started, 3),
    }


def tuning_config(
    parameters: TrainingParameters, config: TrainingConfig, n_rows: int
) -> TrainingConfig:
    """How the backbone is tuned, where `config` says how the bits are trained."""
    epochs = max(_FEWEST_EPOCHS, round(_EPOCHS * math.sqrt(_N_ROWS / n_rows)))
    moves = {"flip": True, "shift": _SHIFT}
    moves |= {name: getattr(parameters, name) for name in moves if not _is_open(parameters, name)}
    return common_config(
        **{name: getattr(config, name) for name in _SAME_VALUES},
        **moves,
        epochs=min(epochs, _MOST_EPOCHS) if config.tuning_epochs is None else config.tuning_epochs,
        batch_size=min(_BATCH_SIZE, n_rows),
        learning_rate=_LEARNING_RATE,
        weight_decay=_WEIGHT_DECAY,
        warm_up=0.1,
        mixup=_MIXUP,
        ema=0.99,
    )


def cut_backbone(
    backbone: nn.Module, images: np.ndarray, config: TrainingConfig, device: torch.device
) -> tuple[nn.Module, Inputs]:
    """The part of the backbone that is tuned, and all rows as it reads them."""
    n_last = count_last_blocks(config.fine_tune)
    if n_last is None:
        return backbone, torch.from_numpy(images).to(device)
    first, last = split_backbone(backbone, n_last)
    return last, compute_activations(first, images, config, device)


def identify_tuning(images: np.ndarray, supervision: Supervision, config: TrainingConfig) -> str:
    """A fingerprint of the data and settings, by which checkpoints know their tuning."""
    assert supervision.classes is not None  # noqa: S101
    facts = {"config": config.to_json(), "threads": torch.get_num_threads()}
    return compute_fingerprint(facts, [images, supervision.classes])


def _train_classifier(part: nn.Module, inputs: Inputs, task: TuningTask) -> TrainedClassifiers:
    config, classes = task.config, task.supervision.classes
    assert classes is not None  # noqa: S101
    n_classes, scales = int(classes.max()) + 1, _learn_scales(part, inputs)
    checkpoints = Checkpoints(
        _stage_folder(config, TUNING_STAGE),
        task.fingerprint,
        resume=config.resume,
        every_seconds=config.checkpoint_seconds,
    )

    def build() -> Classifiers:
        parts = copy.deepcopy(part), copy.deepcopy(scales)
        features = TunedFeatures(*parts, keeps_statistics=not config.tune_statistics)
        output = nn.Linear(len(scales.mean), n_classes)
        nn.init.zeros_(output.weight)
        return Classifiers(Posterior([output]), features)

    with progress_bar(config.verbose, config.epochs, "epoch of the classes") as progress:
        return train_classifiers(
            ClassifierTask(
                build=build,
                rows=inputs,
                supervision=task.supervision,
                is_unseen=task.is_unseen,
                config=config,
                smoothing=SMOOTHING,
                block=_BATCH_SIZE,
                checkpoints=checkpoints,
                progress=progress,
                name="tuning of the backbone",
            )
        )


def _learn_scales(part: nn.Module, inputs: Inputs) -> Standardize:
    """The scales of the features before tuning, on rows that are drawn evenly."""
    step = -(-len(inputs) // _SCALE_ROWS)
    features = encode_rows(part, inputs[::step], _BATCH_SIZE).cpu()
    scales = Standardize(features.shape[1])
    scales.learn(features, "common")
    return scales


def _is_open(parameters: TrainingParameters, name: str) -> bool:
    return is_auto(getattr(parameters, name))


def _stage_folder(config: TrainingConfig, stage: str) -> Path | None:
    return None if config.checkpoint is None else Path(config.checkpoint) / stage
