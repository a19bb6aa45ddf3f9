"""What is trained before the bits: class posteriors, or the head of a backbone that is to be tuned.

Each of these trainings saves its state in a folder of its own inside the checkpoint's, so that a
fit continues where it was stopped.
"""

import copy
from dataclasses import replace
from pathlib import Path
from typing import cast

from torch import Tensor

from rankbits.methods.training.checkpoints import Checkpoints
from rankbits.methods.training.config import TrainingConfig, fit_to_rows
from rankbits.methods.training.encoders import Encoder
from rankbits.methods.training.inputs import move_to
from rankbits.methods.training.layers import Posterior, Standardize
from rankbits.methods.training.network_posterior import learn_network_posterior
from rankbits.methods.training.posterior import PosteriorShape, TrainedPosterior, learn_posterior
from rankbits.methods.training.preparation import HEAD_STAGE, Preparation
from rankbits.methods.training.recipes import Recipes, beliefs_recipe, frozen_backbone_recipe
from rankbits.methods.training.trained_part import build_fresh_encoder
from rankbits.methods.training.trainer import TrainingTask, run_training
from rankbits.methods.training.tuning import TunedBackbone

_HEAD_VALUES = (  # those of the recipe of a frozen backbone; the shape of the head stays
    "alpha",
    "alpha_end",
    "optimizer",
    "learning_rate",
    "weight_decay",
    "precision",
    "nesterov",
    "schedule",
    "warm_up",
    "batch_size",
    "epochs",
    "noise",
    "noise_scaling",
    "mixup",
    "flip",
    "shift",
    "ema",
)


_BITS_VALUES = tuple(name for name in _HEAD_VALUES if name not in ("alpha", "alpha_end"))


def train_posterior(preparation: Preparation) -> TrainedPosterior:
    """Train the classifiers whose posterior the bits read."""
    if preparation.learns_classes:
        return _train_network(preparation)
    if preparation.tuned is not None:
        return _read_tuned(preparation, preparation.tuned)
    config, encoder = preparation.config, preparation.encoder
    architecture = encoder.architecture
    shape = PosteriorShape(
        n_features=architecture.input_shape[-1],
        n_classes=architecture.n_classes,
        width=architecture.posterior_width,
        n_classifiers=architecture.posterior,
    )
    standardize = dict(encoder.head.named_children())["standardize"].to(preparation.device)
    rows = preparation.head_inputs.to(preparation.device)
    return learn_posterior(
        shape,
        standardize(rows.float()),
        preparation.supervision.take(preparation.split.train),
        config.seed,
        lambda stage: stage_checkpoints(preparation, stage),
        config.posterior_cache,
    )


def _read_tuned(preparation: Preparation, tuned: TunedBackbone) -> TrainedPosterior:
    """What tuned networks believe; they have learned the classes already."""
    classifiers = dict(preparation.encoder.head.named_children())["posterior"]
    names = ("held_out_accuracy", "held_out_loss", "factor")
    report = {name: tuned.report[name] for name in names}
    pool = replace(tuned.pool, inputs=tuned.pool.inputs.to(preparation.device))
    return TrainedPosterior(cast(Posterior, classifiers), pool, report)


def _train_network(preparation: Preparation) -> TrainedPosterior:
    """Train the encoder's own network on the classes."""
    config = replace(preparation.config, batches="plain", gallery="batch", n_restarts=1)
    return learn_network_posterior(
        lambda: build_fresh_encoder(preparation.encoder, preparation.initialization),
        preparation.head_inputs.to(preparation.device),
        preparation.supervision.take(preparation.split.train),
        config,
        stage_checkpoints(preparation, "posterior"),
        config.posterior_cache,
    )


def bits_config(preparation: Preparation, posterior: TrainedPosterior | None) -> TrainingConfig:
    """How the bits are trained: as configured or, behind a network, as those of an MLP."""
    config = preparation.config
    if posterior is None or not preparation.learns_classes:
        is_tuned = preparation.tuned is not None  # then `precision` is that of the network
        return replace(config, precision="single") if is_tuned else config
    recipe = beliefs_recipe(config, preparation.method.recipes)
    config = replace(config, **{name: recipe[name] for name in _BITS_VALUES})
    return fit_to_rows(config, len(posterior.pool.inputs))


def insert_posterior(encoder: Encoder, posterior: TrainedPosterior) -> Encoder:
    """A copy of the encoder with the trained classifiers, and the scales of what they say."""
    encoder = copy.deepcopy(encoder)
    parts = dict(encoder.head.named_children())
    parts["posterior"].load_state_dict(posterior.classifiers.state_dict())
    encoder.head.requires_grad_(False).to(posterior.pool.inputs.device).eval()
    cast(Standardize, parts["rescale"]).learn(posterior.pool.inputs)
    return encoder


def train_head(preparation: Preparation) -> dict[str, Tensor]:
    """Weights of the head, trained on the features of the backbone before it is tuned.

    A fresh head would first spoil the backbone: its gradients mean nothing yet.
    """
    method = preparation.method
    supervision = preparation.supervision.take(preparation.split.train)
    task = TrainingTask(
        build_module=lambda: (
            build_fresh_encoder(preparation.encoder, preparation.initialization).head
        ),
        build_loss=preparation.copy_loss,
        inputs=preparation.head_inputs.to(preparation.device),
        query_inputs=move_to(preparation.query_head_inputs, preparation.device),
        supervision=supervision.tabulated(),
        config=head_config(preparation.config, method.recipes, len(supervision)),
        checkpoints=stage_checkpoints(preparation, HEAD_STAGE),
        method_name=method.name,
    )
    return run_training(task).best.weights


def head_config(config: TrainingConfig, method_recipes: Recipes, n_rows: int) -> TrainingConfig:
    """How the head is trained: as that of a frozen backbone."""
    recipe = frozen_backbone_recipe(method_recipes)
    config = replace(config, **{name: recipe[name] for name in _HEAD_VALUES})
    return fit_to_rows(config, n_rows)


def stage_checkpoints(preparation: Preparation, stage: str) -> Checkpoints:
    """Where a training before that of the bits saves its state."""
    config = preparation.config
    return Checkpoints(
        None if config.checkpoint is None else Path(config.checkpoint) / stage,
        f"{stage} of {preparation.fingerprint}",
        resume=config.resume,
        every_seconds=config.checkpoint_seconds,
    )
