"""The first stage of a fit: everything that is settled before the first gradient.

Parameters are checked and resolved into one configuration, y becomes supervision, rows are held out
for validation, and an encoder is built whose scales and anchors are learned.
"""

import copy
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor, nn

from rankbits.errors import InputError
from rankbits.methods.query_log import QueryLog, rank_items, read_query_log
from rankbits.methods.supervision import Supervision, supervise
from rankbits.methods.training import parallel
from rankbits.methods.training.activations import compute_activations
from rankbits.methods.training.architecture import Architecture
from rankbits.methods.training.backbones import (
    NAMES,
    RowReader,
    name_backbone,
    split_backbone,
)
from rankbits.methods.training.checkpoints import compute_fingerprint, read_seed
from rankbits.methods.training.config import TrainingConfig, resolve_config
from rankbits.methods.training.encoders import Encoder, build_encoder, learn_scales
from rankbits.methods.training.fields import is_auto
from rankbits.methods.training.initialization import Initialization
from rankbits.methods.training.inputs import Inputs
from rankbits.methods.training.method import MethodDefinition
from rankbits.methods.training.parameters import TrainingParameters, count_last_blocks
from rankbits.methods.training.posterior import STAGES, choose_width
from rankbits.methods.training.recipes import (
    choose_recipe,
    encoder_kind,
    learns_classes,
    supervision_kind,
)
from rankbits.methods.training.sample_pool import pool_size
from rankbits.methods.training.student import tune_backbone
from rankbits.methods.training.tuning import (
    TUNING_STAGE,
    Goal,
    TunedBackbone,
    Tuner,
    tuning_config,
)
from rankbits.methods.training.validation import RowSplit, split_rows

HEAD_STAGE = "head"
_SCALES_STREAM = 1 << 20  # keeps the draws of anchors apart from those of restarts and epochs


@dataclass(frozen=True)
class Preparation:
    """What the training of an encoder starts from."""

    method: MethodDefinition
    config: TrainingConfig
    loss: nn.Module  # with its first weights
    supervision: Supervision  # of all rows
    split: RowSplit
    device: torch.device
    reader: RowReader
    query_reader: RowReader | None  # of logged queries; None if rows of X are the queries
    encoder: Encoder  # scales, anchors and backbone in place; all other weights are fresh
    tuned: TunedBackbone | None  # a backbone that learned the classes already
    initialization: Initialization
    constant_features: np.ndarray
    fingerprint: str  # of settings and data; "" without checkpoints

    def copy_loss(self) -> nn.Module:
        """A loss that a training may move."""
        return copy.deepcopy(self.loss)

    @cached_property
    def inputs(self) -> Inputs:
        """All rows as the trained module reads them: raw, features, or activations."""
        return read_inputs(self.config, self.reader)

    @cached_property
    def query_inputs(self) -> Inputs | None:
        """All logged queries, likewise; None if rows of X are the queries."""
        return None if self.query_reader is None else read_inputs(self.config, self.query_reader)

    @cached_property
    def head_inputs(self) -> Tensor:
        """The training rows as the head reads them."""
        is_log = self.query_reader is not None
        return read_head_inputs(self.reader, None if is_log else self.split)

    @cached_property
    def query_head_inputs(self) -> Tensor | None:
        """The training queries of a log, likewise."""
        reader = self.query_reader
        return None if reader is None else read_head_inputs(reader, self.split)

    @property
    def tunes_backbone(self) -> bool:
        """Whether a backbone is trained together with the bits."""
        return self.encoder.backbone is not None and tunes_with_bits(self.config)

    @property
    def learns_classes(self) -> bool:
        """Whether the encoder's own network learns the classes, and the bits read its beliefs."""
        return self.config.posterior > 0 and learns_classes(self.config.encoder)

    @property
    def is_validated(self) -> bool:
        """Whether epochs are scored."""
        return self.config.scoring is not None or len(self.split.held_out) > 0


@dataclass(frozen=True)
class LoggedQueries:
    """Queries as rows of their own, and what is relevant to them; None for what is nearest."""

    rows: np.ndarray
    judgements: Any


def prepare(
    parameters: TrainingParameters,
    method: MethodDefinition,
    rows: np.ndarray,
    y: Any,
    logged: LoggedQueries | None = None,
    unlabelled: np.ndarray | None = None,
) -> Preparation:
    """Settle everything that a training on these rows, or on logged queries and them, needs."""
    reader, query_reader = RowReader(parameters, rows), None
    if logged is None:
        supervision = supervise_rows(parameters, method, reader, y)
    else:
        query_reader = RowReader(parameters, logged.rows, like=reader)
        supervision = supervise_queries(parameters, method, reader, query_reader, logged.judgements)
    config, split = configure(parameters, method, supervision, is_image=rows.ndim == 4)
    torch.manual_seed(config.seed)
    loss = method.build_loss(supervision)  # refuses parameters that do not suit y
    require_use_of_unlabelled_rows(config, reader, unlabelled)
    tuned = tune_to_classes(parameters, config, reader, supervision, split, unlabelled)
    if tuned is None:
        head_inputs = read_head_inputs(reader, split if logged is None else None)
    else:
        head_inputs = tuned.networks.no_logits  # its head learns nothing from rows
    architecture = describe_encoder(config, head_inputs, supervision, tuned)
    encoder, constant_features = build_encoder(architecture, reader.backbone), np.arange(0)
    if tuned is None:
        rng = np.random.default_rng([config.seed, _SCALES_STREAM])
        constant_features = learn_scales(encoder, head_inputs, rng, config.scaling)
    encoder.tune_last(count_last_blocks(config.fine_tune))
    if not tunes_with_bits(config):
        encoder.freeze_backbone()
    return Preparation(
        method=method,
        config=config,
        loss=loss,
        supervision=supervision,
        split=split,
        device=reader.device,
        reader=reader,
        query_reader=query_reader,
        encoder=encoder,
        tuned=tuned,
        initialization=Initialization(config.init, encoder.head, head_inputs, config.n_bits),
        constant_features=constant_features,
        fingerprint=identify_training(
            method,
            config,
            architecture,
            supervision,
            split,
            [rows, *([] if logged is None else [logged.rows])],
            unlabelled,
        ),
    )


def tunes_with_bits(config: TrainingConfig) -> bool:
    """Whether a backbone is trained by the loss of the method, not by the classes before it."""
    return bool(config.fine_tune) and not config.posterior


def tune_to_classes(
    parameters: TrainingParameters,
    config: TrainingConfig,
    reader: RowReader,
    supervision: Supervision,
    split: RowSplit,
    unlabelled: np.ndarray | None,
) -> TunedBackbone | None:
    """Let copies of the backbone learn the classes, if the bits are to read what they believe."""
    if reader.backbone is None or not config.fine_tune or not config.posterior:
        return None
    images = reader.rows[split.train] if len(split.held_out) else reader.rows
    goal, cache = Goal(supervision.take(split.train)), config.posterior_cache
    facts = {
        "config": tuning_config(parameters, config, len(images), len(images)).to_json(),
        "networks": config.posterior,
        "threads": torch.get_num_threads(),
    }
    arrays = [images, goal.classes] + ([] if unlabelled is None else [unlabelled])
    fingerprint = "" if cache is None else compute_fingerprint(facts, arrays)
    tuned: TunedBackbone | None = None if cache is None else cache.get(fingerprint)
    if tuned is None:
        build_tuner = partial(_build_tuner, parameters, config, reader, len(images))
        tuned = tune_backbone(build_tuner, images, goal, config.posterior, unlabelled)
    if cache is not None:
        cache.put(fingerprint, tuned)
    reader.replace_backbone(tuned.networks)
    return tuned


def _build_tuner(
    parameters: TrainingParameters,
    config: TrainingConfig,
    reader: RowReader,
    n_labelled: int,
    images: np.ndarray,
) -> Tuner:
    assert reader.backbone is not None  # noqa: S101
    own_config = tuning_config(parameters, config, len(images), n_labelled)
    return Tuner(reader.backbone, images, own_config, reader.device)


def require_use_of_unlabelled_rows(
    config: TrainingConfig, reader: RowReader, unlabelled: np.ndarray | None
) -> None:
    """Refuse rows without labels where no network is there to label them."""
    if unlabelled is None:
        return
    if reader.backbone is None or not config.fine_tune or not config.posterior:
        raise InputError(
            "unlabelled must be None unless y is class labels and a backbone is tuned to them "
            "(encoder='backbone', fine_tune='last:11'): its networks label the other rows"
        )


def supervise_rows(
    parameters: TrainingParameters, method: MethodDefinition, reader: RowReader, y: Any
) -> Supervision:
    """What y says about the rows, if the method can use it."""
    rows = reader.rows
    if y is None:
        method.require_labels("distances")
        rows = reader.comparable_rows()
    supervision = supervise(rows, y, graded=_is_graded(parameters, method))
    method.require_labels(supervision_kind(supervision))
    return supervision


def supervise_queries(
    parameters: TrainingParameters,
    method: MethodDefinition,
    items: RowReader,
    queries: RowReader,
    judgements: Any,
) -> QueryLog:
    """What judgements say about logged queries, or else their own rankings of the items."""
    if judgements is None:
        method.require_labels("distances")
        rows = queries.comparable_rows(), items.comparable_rows()
        log = rank_items(*rows, _is_graded(parameters, method))
    else:
        log = read_query_log(judgements, len(queries.rows), len(items.rows))
    method.require_labels(supervision_kind(log))
    return log


def _is_graded(parameters: TrainingParameters, method: MethodDefinition) -> bool:
    graded: bool = method.grades_tags if is_auto(parameters.graded) else parameters.graded
    return graded


def configure(
    parameters: TrainingParameters,
    method: MethodDefinition,
    supervision: Supervision,
    *,
    is_image: bool,
) -> tuple[TrainingConfig, RowSplit]:
    """The user's parameters and the recipe as one configuration, and the rows held out."""
    recipe = choose_recipe(parameters, supervision, method.recipes)
    recipe["graded"] = method.grades_tags
    values = {name: getattr(parameters, name) for name in ("validation_fraction", "posterior")}
    values = {name: recipe[name] if is_auto(value) else value for name, value in values.items()}
    seed = choose_seed(parameters)
    split = split_rows(supervision, values["validation_fraction"], seed)
    n_rows, n_queries = len(split.train), None
    if isinstance(supervision, QueryLog):
        n_rows, n_queries = supervision.n_items, n_rows
    reads_pool = values["posterior"] and not learns_classes(recipe["encoder"])
    trains_on_raw_rows = encoder_kind(recipe["encoder"]) != "backbone" or parameters.fine_tune
    trains_on_raw_rows = bool(trains_on_raw_rows) and not reads_pool
    config = resolve_config(
        parameters,
        recipe,
        supervision,
        n_rows=pool_size(n_rows) if reads_pool else n_rows,
        n_queries=n_queries,
        moves_images=is_image and trains_on_raw_rows,
        seed=seed,
    )
    return config, split


def choose_seed(parameters: TrainingParameters) -> int:
    """The seed that random_state gives; without one, a training that is resumed keeps its own."""
    folder, random_state = parameters.checkpoint, parameters.random_state
    if folder is not None and parameters.resume and random_state is None:
        for stage in ("", *STAGES, HEAD_STAGE, TUNING_STAGE):
            seed = read_seed(Path(folder) / stage)
            if seed is not None:
                return seed
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return int(parallel.agree(float(seed)))


def read_inputs(config: TrainingConfig, reader: RowReader) -> Inputs:
    """All rows as the trained module reads them."""
    if reader.backbone is None:
        return torch.from_numpy(reader.rows)
    if not tunes_with_bits(config):
        return reader.features
    n_last = count_last_blocks(config.fine_tune)
    if n_last is None:
        return torch.from_numpy(reader.rows)
    first, _ = split_backbone(reader.backbone, n_last)
    return compute_activations(first, reader.rows, config, reader.device)


def read_head_inputs(reader: RowReader, split: RowSplit | None) -> Tensor:
    """The rows as the head of the encoder reads them; those of a split that it is trained on."""
    rows = torch.from_numpy(reader.rows) if reader.backbone is None else reader.features
    has_others = split is not None and len(split.held_out)
    return rows[torch.from_numpy(split.train)] if split is not None and has_others else rows


def describe_encoder(
    config: TrainingConfig,
    head_inputs: Tensor,
    supervision: Supervision,
    tuned: TunedBackbone | None = None,
) -> Architecture:
    """The architecture of the encoder that the configuration names."""
    kind, backbone = encoder_kind(config.encoder), ""
    if kind == "backbone":
        kind = "mlp" if config.hidden else "linear"
        backbone = name_backbone(config)
    return Architecture(
        kind=kind,
        input_shape=tuple(head_inputs.shape[1:]),
        n_bits=config.n_bits,
        hidden=config.hidden,
        activation=config.activation,
        normalization=config.normalization,
        dropout=config.dropout,
        input_dropout=config.input_dropout,
        skip=config.skip,
        n_anchors=0 if config.kernel is None else min(config.n_anchors, len(head_inputs)),
        backbone=backbone,
        image_size=config.image_size if backbone in NAMES else 0,
        **_describe_posterior(config, len(head_inputs), supervision, tuned),
    )


def _describe_posterior(
    config: TrainingConfig,
    n_rows: int,
    supervision: Supervision,
    tuned: TunedBackbone | None,
) -> dict[str, Any]:
    if not config.posterior:
        return {}
    classes = supervision.classes
    is_network = learns_classes(config.encoder)
    reads_features = encoder_kind(config.encoder) in ("mlp", "backbone") and config.kernel is None
    if classes is None or not (reads_features or is_network):
        raise InputError(
            "posterior must be 0 unless y is class labels and the encoder is 'mlp' without kernel, "
            f"'backbone' or 'resnet', got {config.posterior}"
        )
    n_classes = int(classes.max()) + 1
    if tuned is not None:
        n_networks = len(tuned.networks.networks)
        return {"posterior": n_networks, "n_classes": n_classes, "fine_tune": config.fine_tune}
    return {
        "posterior": config.posterior,
        "n_classes": n_classes,
        "posterior_width": 0 if is_network else choose_width(n_rows),
    }


def identify_training(
    method: MethodDefinition,
    config: TrainingConfig,
    architecture: Architecture,
    supervision: Supervision,
    split: RowSplit,
    arrays: list[np.ndarray],
    unlabelled: np.ndarray | None,
) -> str:
    """A fingerprint of all that the training depends on, for its checkpoints; "" without them."""
    if config.checkpoint is None:
        return ""
    facts = {
        "method": method.class_name,
        "loss": method.loss_settings(),
        "encoder": architecture.to_json(),
        "config": config.to_json(),
        "split": split.to_json(),
        "supervision": supervision.digest(),
    }
    if unlabelled is not None:
        facts["unlabelled"] = compute_fingerprint({}, [unlabelled])
    return compute_fingerprint(facts, arrays)
