"""The second and the third stage of a fit: train what was prepared, and assemble the encoder."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rankbits.methods.training import parallel
from rankbits.methods.training.checkpoints import Checkpoints
from rankbits.methods.training.divergence import DivergenceGuard, require_several_codes
from rankbits.methods.training.encoders import Encoder, encode_rows
from rankbits.methods.training.inputs import Inputs, keep_all
from rankbits.methods.training.kinds import KINDS
from rankbits.methods.training.log import TrainingLog, progress_bar
from rankbits.methods.training.preparation import Preparation
from rankbits.methods.training.trained_part import (
    BitsStart,
    TwoMaps,
    assemble_encoder,
    has_two_maps,
    item_map,
    maps_of,
    query_map,
)
from rankbits.methods.training.trainer import Score, TrainingResult, TrainingTask, run_training
from rankbits.methods.training.validation import HardScore


@dataclass(frozen=True)
class TrainedBits:
    """What training gave."""

    result: TrainingResult
    frame: Encoder  # what the trained part belongs into
    posterior_report: dict[str, Any] | None
    n_failed_checkpoints: int


@dataclass(frozen=True)
class FittedEncoder:
    """What a fit gives to the estimator."""

    encoder: Encoder
    query_encoder: Encoder  # the same object where queries are encoded as items are
    history: list[dict[str, Any]]
    report: dict[str, Any]


def train(preparation: Preparation) -> TrainedBits:
    """Train what stands before the bits, if anything, and then the part that is not settled yet."""
    start = preparation.examples.reader.start_bits(preparation)
    config, method = start.config, preparation.method
    checkpoints = Checkpoints(
        config.checkpoint,
        preparation.fingerprint,
        resume=config.resume,
        every_epochs=config.checkpoint_epochs,
        every_seconds=config.checkpoint_seconds,
    )
    with progress_bar(config.verbose, config.epochs * config.n_restarts) as progress:
        task = TrainingTask(
            build_module=lambda: build_maps(start),
            build_loss=preparation.copy_loss,
            inputs=start.inputs,
            query_inputs=preparation.examples.read_queries(preparation.split),
            supervision=start.supervision.tabulated(),
            config=config,
            augment=start.augment,
            score=build_score(preparation, start.frame),
            checkpoints=checkpoints,
            log=TrainingLog(config.log),
            progress=progress,
            method_name=method.name,
        )
        result = run_training(task)
    guard = DivergenceGuard(method.name, config.learning_rate)
    bits = [item_map(result.module)] if config.queries == "real" else maps_of(result.module)
    for part in bits:
        require_several_codes(guard, part, start.inputs, task.supervision, result.history)
    return TrainedBits(result, start.frame, start.posterior_report, checkpoints.n_failed)


def build_maps(start: BitsStart) -> nn.Module:
    """What is trained: a map for queries and items, or one for each."""
    part = start.build_part()
    return part if start.config.queries == "same" else TwoMaps(part)


def build_score(preparation: Preparation, frame: Encoder) -> Score | None:
    """How an epoch is scored: as the user says, or by the ranking of the held-out rows, if any."""
    scoring, examples = preparation.config.scoring, preparation.examples
    if scoring is not None:
        return lambda module: scoring(*(assemble_encoder(frame, part) for part in maps_of(module)))
    if not preparation.split.holds_out:
        return None
    inputs: Inputs = examples.reader.trained_rows.to(preparation.device)
    if frame.architecture.posterior:
        assert isinstance(inputs, Tensor)  # noqa: S101 - features, not activations
        parts = dict(frame.head.named_children())
        beliefs = nn.Sequential(parts["standardize"], parts["posterior"])
        inputs = encode_rows(beliefs, inputs, KINDS[frame.architecture.kind].block)
    return HardScore(
        inputs,
        preparation.supervision,
        preparation.split.held_out,
        preparation.method.query_values,
        query_inputs=examples.read_queries(keep_all(len(preparation.supervision))),
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
        "tuning": preparation.examples.reader.tuning_report,
        "posterior": trained.posterior_report,
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
