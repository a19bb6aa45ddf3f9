"""The first stage of a fit: everything that is settled before the first gradient.

Parameters are resolved into one configuration, y becomes supervision, rows are held out for
validation, and an encoder is built whose scales and anchors are learned. What the rows are is a
matter of the examples, and how the encoder reads them one of their reader.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor, nn

from rankbits.errors import InputError
from rankbits.methods.parameters.fields import is_auto
from rankbits.methods.supervision import Supervision
from rankbits.methods.training import parallel
from rankbits.methods.training.checkpoints import compute_fingerprint, read_seed
from rankbits.methods.training.config import TrainingConfig, resolve_config
from rankbits.methods.training.encoders import Encoder
from rankbits.methods.training.examples import Examples, RowReader
from rankbits.methods.training.inputs import RowSplit, split_rows
from rankbits.methods.training.kinds import Architecture
from rankbits.methods.training.parameters import TrainingParameters
from rankbits.methods.training.recipes import Recipes, choose_recipe
from rankbits.methods.training.trained_part import Initialization

_SCALES_STREAM = 1 << 20  # keeps the draws of anchors apart from those of restarts and epochs


_LABELS = {
    "classes": "class labels",
    "tags": "a multi-hot matrix",
    "distances": "None (ranks by distance)",
    "judgements": "sparse judgements",
    "levels": "an affinity",
}


@dataclass(frozen=True)
class MethodDefinition:
    """One method, as the stages of a fit see it."""

    name: str  # as in `rankbits.methods.get`, for errors
    class_name: str
    build_loss: Callable[[Supervision], nn.Module]  # a module: forward(logits, batch) -> scalar
    query_values: Callable[..., Tensor]  # (phi, levels, gallery=, own=) -> value of each query
    loss_settings: Callable[[], dict[str, Any]]  # parameters of the loss, once they are checked
    accepted_labels: tuple[str, ...] = ()  # kinds of supervision; all of them if empty
    recipes: Recipes = field(default_factory=dict)
    grades_tags: bool = False

    def require_labels(self, kind: str) -> None:
        """Refuse supervision of a kind that the loss cannot use."""
        if not self.accepted_labels or kind in self.accepted_labels:
            return
        accepted = " or ".join(_LABELS[name] for name in self.accepted_labels)
        got = f"got {_LABELS[kind]}"
        if kind == "distances":
            got = "it requires y to be passed, but the target y is None"
        raise InputError(
            f"y must be {accepted} for {self.class_name}, {got}; talr-ap and talr-ndcg take any"
        )


@dataclass(frozen=True)
class Preparation:
    """What the training of an encoder starts from."""

    method: MethodDefinition
    config: TrainingConfig
    loss: nn.Module  # with its first weights
    examples: Examples
    supervision: Supervision  # of all rows
    split: RowSplit  # of the queries
    encoder: Encoder  # scales, anchors and backbone in place; all other weights are fresh
    head_inputs: Tensor  # the training rows as the head reads them
    initialization: Initialization
    constant_features: np.ndarray
    fingerprint: str  # of settings and data; "" without checkpoints

    def copy_loss(self) -> nn.Module:
        """A loss that a training may move."""
        return copy.deepcopy(self.loss)

    @property
    def device(self) -> torch.device:
        """Where the encoder is trained."""
        return self.examples.reader.device

    @property
    def is_validated(self) -> bool:
        """Whether epochs are scored."""
        return self.config.scoring is not None or self.split.holds_out


def prepare(method: MethodDefinition, examples: Examples) -> Preparation:
    """Settle everything that a training on these examples needs."""
    supervision = examples.supervise(method)
    config, split = configure(method, examples, supervision)
    torch.manual_seed(config.seed)
    loss = method.build_loss(supervision)  # refuses parameters that do not suit y
    examples = examples.settle(config, supervision, split)
    reader = examples.reader
    head_inputs = reader.select_head_rows(examples.split_items(split))
    architecture = describe_encoder(config, reader, head_inputs, supervision)
    encoder = reader.build_encoder(architecture, config)
    rng = np.random.default_rng([config.seed, _SCALES_STREAM])
    constant_features = reader.learn_layers(encoder, head_inputs, rng, config.scaling)
    return Preparation(
        method=method,
        config=config,
        loss=loss,
        examples=examples,
        supervision=supervision,
        split=split,
        encoder=encoder,
        head_inputs=head_inputs,
        initialization=Initialization(config.init, encoder.head, head_inputs, config.n_bits),
        constant_features=constant_features,
        fingerprint=identify_training(method, config, architecture, supervision, split, examples),
    )


def configure(
    method: MethodDefinition, examples: Examples, supervision: Supervision
) -> tuple[TrainingConfig, RowSplit]:
    """The user's parameters and the recipe as one configuration, and the rows held out."""
    reader, parameters = examples.reader, examples.reader.parameters
    recipe = choose_recipe(parameters, supervision, method.recipes)
    recipe["graded"] = method.grades_tags
    fraction, posterior = parameters.validation_fraction, parameters.posterior
    fraction = recipe["validation_fraction"] if is_auto(fraction) else fraction
    posterior = recipe["posterior"] if is_auto(posterior) else posterior
    seed = choose_seed(parameters, reader.stages)
    split = split_rows(supervision, fraction, seed)
    config = resolve_config(
        parameters,
        recipe,
        supervision,
        epoch=examples.describe_epoch(split, posterior),
        moves_images=reader.moves_images(posterior),
        seed=seed,
    )
    return config, split


def choose_seed(parameters: TrainingParameters, stages: tuple[str, ...]) -> int:
    """The seed that random_state gives; without one, a training that is resumed keeps its own."""
    folder, random_state = parameters.checkpoint, parameters.random_state
    if folder is not None and parameters.resume and random_state is None:
        for stage in stages:
            seed = read_seed(Path(folder) / stage)
            if seed is not None:
                return seed
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return int(parallel.agree(float(seed)))


def describe_encoder(
    config: TrainingConfig, reader: RowReader, head_inputs: Tensor, supervision: Supervision
) -> Architecture:
    """The architecture of the encoder that the configuration names."""
    posterior: dict[str, Any] = {}
    if config.posterior:
        if supervision.classes is None or not reader.has_features(config):
            raise InputError(
                "posterior must be 0 unless y is class labels and the encoder is 'mlp' without "
                f"kernel, 'backbone' or 'resnet', got {config.posterior}"
            )
        posterior = reader.describe_posterior(config, len(head_inputs))
        posterior["n_classes"] = int(supervision.classes.max()) + 1
    return Architecture(
        input_shape=tuple(head_inputs.shape[1:]),
        n_bits=config.n_bits,
        hidden=config.hidden,
        activation=config.activation,
        normalization=config.normalization,
        dropout=config.dropout,
        input_dropout=config.input_dropout,
        skip=config.skip,
        n_anchors=0 if config.kernel is None else min(config.n_anchors, len(head_inputs)),
        **reader.describe_head(config),
        **posterior,
    )


def identify_training(
    method: MethodDefinition,
    config: TrainingConfig,
    architecture: Architecture,
    supervision: Supervision,
    split: RowSplit,
    examples: Examples,
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
    for name, array in examples.reader.extra_arrays.items():
        facts[name] = compute_fingerprint({}, [array])
    return compute_fingerprint(facts, examples.arrays)
