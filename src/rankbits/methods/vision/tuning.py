"""Tuning of a backbone to classes, before the bits of an encoder are learned.

Several copies of the backbone, or of its last blocks, learn the classes by cross-entropy with
smoothed labels; pictures of different classes are mixed, and so are their labels. Where only the
last blocks are tuned, the others run once, and it is activations that are mixed: see `activations`.

A tenth of the rows is kept from each network: a network is sure of all pictures that it was tuned
on, and only others tell how doubtful new ones will be. Bits are trained on what the networks
believe of those. For rows without labels see `student`.

Notation: K networks, C classes.
"""

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits.methods.parameters.fields import is_auto
from rankbits.methods.supervision import Supervision
from rankbits.methods.training import parallel
from rankbits.methods.training.checkpoints import Checkpoints, compute_fingerprint
from rankbits.methods.training.classifiers import (
    Classifiers,
    ClassifierTask,
    TrainedClassifiers,
    draw_unseen,
    train_classifiers,
)
from rankbits.methods.training.config import TrainingConfig, common_config
from rankbits.methods.training.devices import mixed_precision, use_mixed_precision
from rankbits.methods.training.encoders import encode_rows
from rankbits.methods.training.inputs import Inputs, take_rows
from rankbits.methods.training.layers import Posterior, Standardize, class_beliefs
from rankbits.methods.training.log import progress_bar
from rankbits.methods.training.parameters import TrainingParameters
from rankbits.methods.training.run import select_prefix
from rankbits.methods.training.sample_pool import SamplePool, pool_size
from rankbits.methods.vision.activations import (
    Activations,
    compute_activations,
    count_views,
    draw_view,
    find_activations,
)
from rankbits.methods.vision.augmentation import build_mover
from rankbits.methods.vision.frozen import name_engine
from rankbits.methods.vision.network_posterior import SMOOTHING
from rankbits.methods.vision.tuned_networks import TunedNetwork, TunedNetworks, cut_backbone

TUNING_STAGE = "tuning/0"  # the folder of the first network, in that of the checkpoint
BLOCK = 128  # rows that a network is asked about at a time
_SCALE_ROWS = 2048  # rows whose features set the scales of the classifier
_BATCH_SIZE, _LEARNING_RATE, _WEIGHT_DECAY, _MIXUP, _SHIFT = 128, 1e-2, 0.05, 0.2, 4
_EPOCHS, _N_ROWS = 12, 5000  # so many epochs for so many rows, fewer by their square root
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
    """Networks that know the classes, and what the bits behind them are trained on."""

    networks: TunedNetworks
    pool: SamplePool
    report: dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """What networks are to learn."""

    supervision: Supervision  # with classes
    targets: np.ndarray | None = None  # probabilities (n, C) of classes; None: those of supervision

    @property
    def classes(self) -> np.ndarray:
        """The class of every row."""
        assert self.supervision.classes is not None  # noqa: S101
        return self.supervision.classes

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.classes.max()) + 1


@dataclass(frozen=True)
class Asked:
    """Rows that a network is asked about when it is tuned: each in so many of its views."""

    rows: np.ndarray
    n_views: int


@dataclass(frozen=True)
class Tuned:
    """A tuned network, its logits (m, C) of what it was asked about, and how it was tuned."""

    network: TunedNetwork
    logits: Tensor
    report: dict[str, Any]

    @property
    def factor(self) -> float:
        """The factor of the logits with which the network is as sure as it is right."""
        return float(self.report["factor"])


class Tuner:
    """Tunes copies of the last part of a backbone to rows that its first part has read.

    `config` is from `tuning_config`. A network that was tuned before comes from the checkpoint's
    folder, and one that was left unfinished is continued.
    """

    def __init__(
        self, backbone: nn.Module, images: np.ndarray, config: TrainingConfig, device: torch.device
    ) -> None:
        self.images, self.config, self.device = images, config, device
        self.first, self.last = cut_backbone(copy.deepcopy(backbone), config.fine_tune)
        self.first.requires_grad_(False).eval()

    @cached_property
    def inputs(self) -> Inputs:
        """All rows as the networks read them, computed when they are first needed."""
        if isinstance(self.first, nn.Identity):
            return torch.from_numpy(self.images).to(self.device)
        return compute_activations(self.first, self.images, self.config, self.device)

    @cached_property
    def scales(self) -> Standardize:
        """The scales of the features before tuning, on rows that are drawn evenly."""
        step = -(-len(self.inputs) // _SCALE_ROWS)
        features = encode_rows(self.last, self.inputs[::step], BLOCK).cpu()
        scales = Standardize(features.shape[1])
        scales.learn(features, "common")
        return scales

    def tune(self, name: str, goal: Goal, is_unseen: np.ndarray, asked: Asked) -> Tuned:
        """A network of that name, tuned to the rows that are not kept from it."""
        finished = self._checkpoints("tuned", name, goal)
        saved = finished.load()
        if saved is not None:
            tensors, facts = saved
            network = self._build(len(tensors["network.scales.mean"]), goal)
            network.load_state_dict(select_prefix("network", tensors))
            return Tuned(network.to(self.device).eval(), tensors["logits"], facts["report"])
        started = time.perf_counter()
        trained = self._train(name, goal, is_unseen)
        network = cast(TunedNetwork, trained.module.classifiers.members[0])
        logits = self.ask(network, asked).cpu()
        report = _report(trained, int(is_unseen.sum()), time.perf_counter() - started)
        if parallel.rank() == 0:
            tensors = {f"network.{key}": value for key, value in network.state_dict().items()}
            facts = {"report": report, "seed": self.config.seed}
            finished.save({**tensors, "logits": logits}, facts)
        return Tuned(network, logits, report)

    def ask(self, network: TunedNetwork, asked: Asked) -> Tensor:
        """Logits (m, C) of the rows, one view after the other."""
        inputs, logits = take_rows(self.inputs, asked.rows), []
        with mixed_precision(use_mixed_precision(self.config.precision)):
            for view in range(asked.n_views):
                if isinstance(inputs, Tensor):
                    moved: Inputs = draw_view(inputs, view, 0, self.config)
                else:
                    assert isinstance(inputs, Activations)  # noqa: S101
                    moved = inputs.select_view(view)
                logits.append(encode_rows(network, moved, BLOCK).float())
        return torch.cat(logits)

    def clear(self) -> None:
        """Remove the activations, once all networks are tuned."""
        engine = name_engine(self.first, self.device)
        find_activations(self.images, self.config, engine).remove()

    def _train(self, name: str, goal: Goal, is_unseen: np.ndarray) -> TrainedClassifiers:
        config = self.config
        if isinstance(self.inputs, Activations):  # whose views are moved already
            config = replace(config, flip=False, shift=0)
        with progress_bar(config.verbose, config.epochs, f"epoch of network {name}") as progress:
            return train_classifiers(
                ClassifierTask(
                    build=lambda: Classifiers(Posterior([self._build_fresh(goal)])),
                    rows=self.inputs,
                    supervision=goal.supervision,
                    is_unseen=is_unseen,
                    config=config,
                    targets=goal.targets,
                    smoothing=SMOOTHING,
                    block=BLOCK,
                    augment=build_mover(config),
                    checkpoints=self._checkpoints("tuning", name, goal),
                    progress=progress,
                    name="tuning of the backbone",
                )
            )

    def _build_fresh(self, goal: Goal) -> TunedNetwork:
        network = self._build(len(self.scales.mean), goal)
        network.scales.load_state_dict(self.scales.state_dict())
        return network

    def _build(self, n_features: int, goal: Goal) -> TunedNetwork:
        keeps_statistics = not self.config.tune_statistics
        return TunedNetwork(copy.deepcopy(self.last), n_features, goal.n_classes, keeps_statistics)

    def _checkpoints(self, stage: str, name: str, goal: Goal) -> Checkpoints:
        config = self.config
        if config.checkpoint is None:
            return Checkpoints(None)
        targets = [] if goal.targets is None else [goal.targets]
        facts = {
            "config": config.to_json(),
            "threads": torch.get_num_threads(),
            "engine": name_engine(self.first, self.device),
            "name": name,
        }
        return Checkpoints(
            Path(config.checkpoint) / stage / name,
            compute_fingerprint(facts, [self.images, goal.classes, *targets]),
            resume=config.resume,
            every_seconds=config.checkpoint_seconds,
        )


def tune_networks(tuner: Tuner, goal: Goal, n_networks: int) -> list[Tuned]:
    """Several networks, each with rows of its own kept from it, which it is asked about."""
    is_unseen, tuned = draw_unseen(len(goal.classes), n_networks, tuner.config.seed), []
    for k in range(n_networks):
        asked = Asked(np.flatnonzero(is_unseen[:, k]), count_views(tuner.config))
        tuned.append(tuner.tune(str(k), goal, is_unseen[:, k : k + 1], asked))
    tuner.clear()
    return tuned


def join_networks(tuner: Tuner, tuned: Sequence[Tuned]) -> TunedBackbone:
    """Networks side by side, and a pool of what each of them was asked about."""
    inputs = torch.cat([class_beliefs(one.logits) for one in tuned])
    chances = torch.cat([functional.softmax(one.factor * one.logits, dim=1) for one in tuned])
    times = max(1, round(pool_size(len(inputs)) / len(inputs)))
    pool = SamplePool(inputs.repeat(times, 1), chances.repeat(times, 1).cpu().numpy())
    networks = TunedNetworks(tuner.first, [one.network for one in tuned])
    report: dict[str, Any] = {
        name: float(np.mean([one.report[name] for one in tuned]))
        for name in ("held_out_accuracy", "held_out_loss", "factor")
    }
    report |= {"config": tuner.config.to_json(), "networks": [one.report for one in tuned]}
    report["engine"] = name_engine(tuner.first, tuner.device)  # of the frozen part
    return TunedBackbone(networks.requires_grad_(False).eval(), pool, report)


def tuning_config(
    parameters: TrainingParameters, config: TrainingConfig, n_rows: int, n_labelled: int
) -> TrainingConfig:
    """How networks are tuned to so many rows, where `config` says how the bits are trained.

    The user's number of epochs is for the labeled rows; where others are added, there are fewer.
    """
    epochs, n_given = config.tuning_epochs, n_labelled
    if epochs is None:
        epochs, n_given = _EPOCHS, _N_ROWS
    fewest = min(_FEWEST_EPOCHS, epochs)
    epochs = max(fewest, round(epochs * math.sqrt(n_given / n_rows)))
    if config.tuning_epochs is None:
        epochs = min(epochs, _MOST_EPOCHS)
    moves = {"flip": True, "shift": _SHIFT}
    moves |= {name: getattr(parameters, name) for name in moves if not _is_open(parameters, name)}
    return common_config(
        **{name: getattr(config, name) for name in _SAME_VALUES},
        **moves,
        epochs=epochs,
        batch_size=min(_BATCH_SIZE, n_rows),
        learning_rate=_LEARNING_RATE,
        weight_decay=_WEIGHT_DECAY,
        warm_up=0.1,
        mixup=_MIXUP,
        mixes_classes=True,
        ema=0.99,
    )


def _report(trained: TrainedClassifiers, n_unseen: int, seconds: float) -> dict[str, Any]:
    return {
        "unseen": n_unseen,
        "held_out_accuracy": round(trained.held_out_accuracy, 5),
        "held_out_loss": round(trained.held_out_loss, 5),
        "factor": round(trained.factor, 4),
        "history": trained.history,
        "seconds": round(seconds, 3),
    }


def _is_open(parameters: TrainingParameters, name: str) -> bool:
    return is_auto(getattr(parameters, name))
