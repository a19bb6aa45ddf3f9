"""What is trained before the bits, if anything, and what these then start from.

Each of these trainings saves its state in a folder of its own inside the checkpoint's, so that a
fit continues where it was stopped.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from torch import nn

from rankbits.methods.supervision import Supervision
from rankbits.methods.training.checkpoints import Checkpoints
from rankbits.methods.training.config import TrainingConfig
from rankbits.methods.training.encoders import Encoder
from rankbits.methods.training.inputs import Augment, Inputs, leave_rows
from rankbits.methods.training.layers import Standardize
from rankbits.methods.training.posterior import PosteriorShape, TrainedPosterior, learn_posterior
from rankbits.methods.training.sample_pool import DrawnClasses
from rankbits.methods.training.trained_part import build_trained_part

if TYPE_CHECKING:
    from rankbits.methods.training.preparation import Preparation


@dataclass(frozen=True)
class BitsStart:
    """What the training of the bits starts from."""

    frame: Encoder  # what the trained part belongs into
    config: TrainingConfig
    inputs: Inputs
    supervision: Supervision
    build_part: Callable[[], nn.Module]  # with fresh weights
    augment: Augment = leave_rows
    posterior_report: dict[str, Any] | None = None


def start_on_rows(preparation: "Preparation") -> BitsStart:
    """Bits that are trained on the rows themselves."""
    frame, examples, split = preparation.encoder, preparation.examples, preparation.split
    inputs = examples.split_items(split).take_training(examples.reader.trained_rows)
    return BitsStart(
        frame=frame,
        config=preparation.config,
        inputs=inputs.to(preparation.device),
        supervision=preparation.supervision.take(split.train),
        build_part=lambda: build_trained_part(frame, preparation.initialization),
    )


def start_behind(preparation: "Preparation", posterior: TrainedPosterior) -> BitsStart:
    """Bits behind classifiers: they are not trained on the rows, but on a pool of noisy ones."""
    frame = insert_posterior(preparation.encoder, posterior)
    return BitsStart(
        frame=frame,
        config=preparation.config,
        inputs=posterior.pool.inputs,
        supervision=DrawnClasses(posterior.pool.probabilities),
        build_part=lambda: build_trained_part(frame, preparation.initialization),
        posterior_report=posterior.report,
    )


def train_posterior(preparation: "Preparation") -> TrainedPosterior:
    """Train the classifiers of vectors whose posterior the bits read."""
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


def insert_posterior(encoder: Encoder, posterior: TrainedPosterior) -> Encoder:
    """A copy of the encoder with the trained classifiers, and the scales of what they say."""
    encoder = copy.deepcopy(encoder)
    parts = dict(encoder.head.named_children())
    parts["posterior"].load_state_dict(posterior.classifiers.state_dict())
    encoder.head.requires_grad_(False).to(posterior.pool.inputs.device).eval()
    cast(Standardize, parts["rescale"]).learn(posterior.pool.inputs)
    return encoder


def stage_checkpoints(preparation: "Preparation", stage: str) -> Checkpoints:
    """Where a training before that of the bits saves its state."""
    config = preparation.config
    return Checkpoints(
        None if config.checkpoint is None else Path(config.checkpoint) / stage,
        f"{stage} of {preparation.fingerprint}",
        resume=config.resume,
        every_seconds=config.checkpoint_seconds,
    )
