"""The second and the third stage of a fit: train what was prepared, and assemble the encoder."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rankbits.methods.supervision import Supervision
from rankbits.methods.training import parallel
from rankbits.methods.training.checkpoints import Checkpoints
from rankbits.methods.training.config import TrainingConfig
from rankbits.methods.training.divergence import DivergenceGuard, require_several_codes
from rankbits.methods.training.encoders import Encoder, encode_rows
from rankbits.methods.training.inputs import Inputs, move_to
from rankbits.methods.training.kinds import KINDS
from rankbits.methods.training.log import TrainingLog, progress_bar
from rankbits.methods.training.maps import TwoMaps, has_two_maps, item_map, maps_of, query_map
from rankbits.methods.training.posterior import TrainedPosterior
from rankbits.methods.training.preparation import Preparation
from rankbits.methods.training.pretraining import (
    bits_config,
    insert_posterior,
    train_head,
    train_posterior,
)
from rankbits.methods.training.sample_pool import DrawnClasses
from rankbits.methods.training.trained_part import assemble_encoder, build_trained_part
from rankbits.methods.training.trainer import Score, TrainingResult, TrainingTask, run_training
from rankbits.methods.training.validation import HardScore


@dataclass(frozen=True)
class TrainedBits:
    """What training gave."""

    result: TrainingResult
    config: TrainingConfig  # of the bits
    frame: Encoder  # what the trained part belongs into
    posterior: TrainedPosterior | None
    n_failed_checkpoints: int


@dataclass(frozen=True)
class FittedEncoder:
    """What a fit gives to the estimator."""

    encoder: Encoder
    query_encoder: Encoder  # the same object where queries are encoded as items are
    history: list[dict[str, Any]]
    report: dict[str, Any]


def train(preparation: Preparation) -> TrainedBits:
    """Train what stands before the bits, if anything, and then the bits."""
    posterior, head_weights, frame = None, None, preparation.encoder
    if preparation.config.posterior:
        posterior = train_posterior(preparation)
        frame = insert_posterior(frame, posterior)
    if preparation.tunes_backbone:
        head_weights = train_head(preparation)
    return train_bits(preparation, frame, posterior, head_weights)


def train_bits(
    preparation: Preparation,
    frame: Encoder,
    posterior: TrainedPosterior | None,
    head_weights: dict[str, Tensor] | None,
) -> TrainedBits:
    """Train the part of the encoder that is not settled yet."""
    config, method = bits_config(preparation, posterior), preparation.method
    inputs, supervision = select_training_rows(preparation, posterior)
    checkpoints = Checkpoints(
        config.checkpoint,
        preparation.fingerprint,
        resume=config.resume,
        every_epochs=config.checkpoint_epochs,
        every_seconds=config.checkpoint_seconds,
    )
    with progress_bar(config.verbose, config.epochs * config.n_restarts) as progress:
        task = TrainingTask(
            build_module=lambda: build_maps(preparation, frame, head_weights),
            build_loss=preparation.copy_loss,
            inputs=inputs,
            query_inputs=select_training_queries(preparation),
            supervision=supervision.tabulated(),
            config=config,
            score=build_score(preparation, frame),
            checkpoints=checkpoints,
            log=TrainingLog(config.log),
            progress=progress,
            method_name=method.name,
        )
        result = run_training(task)
    guard = DivergenceGuard(method.name, config.learning_rate)
    bits = [item_map(result.module)] if config.queries == "real" else maps_of(result.module)
    for part in bits:
        require_several_codes(guard, part, inputs, task.supervision, result.history)
    return TrainedBits(result, config, frame, posterior, checkpoints.n_failed)


def build_maps(
    preparation: Preparation, frame: Encoder, head_weights: dict[str, Tensor] | None
) -> nn.Module:
    """What is trained: a map for queries and items, or one for each."""
    part = build_trained_part(
        frame,
        preparation.initialization,
        tune_statistics=preparation.config.tune_statistics,
        head_weights=head_weights,
    )
    return part if preparation.config.queries == "same" else TwoMaps(part)


def select_training_rows(
    preparation: Preparation, posterior: TrainedPosterior | None
) -> tuple[Inputs, Supervision]:
    """The rows that the bits are trained on, and what is known about them.

    Behind a class posterior these are not the rows of X, but noisy rows with drawn classes.
    """
    if posterior is not None:
        return posterior.pool.inputs, DrawnClasses(posterior.pool.probabilities)
    split = preparation.split
    inputs: Inputs = preparation.head_inputs
    if preparation.tunes_backbone:
        is_log = preparation.query_inputs is not None
        inputs = preparation.inputs if is_log else split.take_training(preparation.inputs)
    return inputs.to(preparation.device), preparation.supervision.take(split.train)


def select_training_queries(preparation: Preparation) -> Inputs | None:
    """The logged queries that the bits are trained on; None if rows of X are the queries."""
    if preparation.query_inputs is None:
        return None
    return preparation.split.take_training(preparation.query_inputs).to(preparation.device)


def build_score(preparation: Preparation, frame: Encoder) -> Score | None:
    """How an epoch is scored: as the user says, or by the ranking of the held-out rows, if any."""
    scoring, held_out = preparation.config.scoring, preparation.split.held_out
    if scoring is not None:
        return lambda module: scoring(*(assemble_encoder(frame, part) for part in maps_of(module)))
    if len(held_out) == 0:
        return None
    inputs: Inputs = preparation.inputs.to(preparation.device)
    if frame.architecture.posterior:
        assert isinstance(inputs, Tensor)  # noqa: S101 - features, not activations
        parts = dict(frame.head.named_children())
        beliefs = nn.Sequential(parts["standardize"], parts["posterior"])
        inputs = encode_rows(beliefs, inputs, KINDS[frame.architecture.kind].block)
    return HardScore(
        inputs,
        preparation.supervision,
        held_out,
        preparation.method.query_values,
        query_inputs=move_to(preparation.query_inputs, preparation.device),
        has_real_queries=preparation.config.queries == "real",
    )


def assemble(preparation: Preparation, trained: TrainedBits, seconds: float) -> FittedEncoder:
    """The encoder of raw rows, on the processor, with its history and its report."""
    module = trained.result.module
    encoder = query_encoder = assemble_encoder(trained.frame, item_map(module)).cpu().eval()
    if has_two_maps(module):
        query_encoder = assemble_encoder(trained.frame, query_map(module)).cpu().eval()
    report = write_report(preparation, trained, seconds)
    return FittedEncoder(encoder, query_encoder, trained.result.history, report)


def write_report(preparation: Preparation, trained: TrainedBits, seconds: float) -> dict[str, Any]:
    """What was done, as JSON values."""
    config, result = preparation.config, trained.result
    return {
        "method": preparation.method.class_name,
        "loss": preparation.method.loss_settings(),
        "encoder": trained.frame.architecture.to_json(),
        "config": config.to_json(),
        "supervision": preparation.supervision.notes(),
        "tuning": None if preparation.tuned is None else preparation.tuned.report,
        "posterior": _report_posterior(preparation, trained),
        "split": preparation.split.to_json(),
        "constant_features": preparation.constant_features.tolist(),
        "epochs": len(result.history),
        "epochs_resumed": result.n_resumed,
        "best": result.best.to_json(),
        "is_validated": preparation.is_validated,
        "seconds": round(seconds, 3),
        "device": str(preparation.device),
        "threads": torch.get_num_threads(),
        "processes": parallel.world_size(),
        "checkpoints_failed": trained.n_failed_checkpoints,
    }


def _report_posterior(preparation: Preparation, trained: TrainedBits) -> dict[str, Any] | None:
    """How the classes were learned; behind a network, also how the bits were, as that differs."""
    if trained.posterior is None or not preparation.learns_classes:
        return None if trained.posterior is None else trained.posterior.report
    return {**trained.posterior.report, "bits_config": trained.config.to_json()}
