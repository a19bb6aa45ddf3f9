"""The configuration of a training: every hyper-parameter with its value, resolved once, frozen.

A value is the user's or, where the user left "auto", that of the recipe. What depends on the data
is settled here too: a batch is no larger than the training set, a training set of few batches gets
more epochs, and only images are mirrored and moved.
"""

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields, replace
from inspect import isfunction
from typing import Any

from rankbits.methods.supervision import Supervision
from rankbits.methods.training.fields import (
    auto_names,
    check_parameters,
    flag,
    integer,
    is_auto,
    parameter,
    reported_values,
)
from rankbits.methods.training.kinds import KINDS
from rankbits.methods.training.parameters import TrainingParameters
from rankbits.methods.training.recipes import COMMON, encoder_kind

FEWEST_STEPS = 100  # a training set of one batch needs more epochs than one of many


class TrainingConfig(TrainingParameters):
    """The hyper-parameters of one training, all of them known and checked.

    Two trainings with equal configurations, data and number of threads end bit for bit alike. The
    constructor sets the attributes, and nothing changes them afterwards.
    """

    seed: int = parameter(0, integer(0))
    mixes_classes: bool = parameter(False, flag)  # whether mixup takes rows of other classes too

    def __post_init__(self) -> None:
        self.__dict__.update(check_parameters(self))
        unresolved = [name for name in auto_names(self) if is_auto(getattr(self, name))]
        assert not unresolved, unresolved  # noqa: S101

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            raise FrozenInstanceError(f"cannot assign to {name!r} of a TrainingConfig")
        super().__setattr__(name, value)

    def to_json(self) -> dict[str, Any]:
        """The values that decide what is learned, for reports and fingerprints."""
        return reported_values(self)


def common_config(**values: Any) -> TrainingConfig:
    """The common recipe with some values replaced."""
    return TrainingConfig(**{**COMMON, **values})


def resolve_config(
    parameters: TrainingParameters,
    recipe: Mapping[str, Any],
    supervision: Supervision,
    *,
    n_rows: int,
    n_queries: int | None = None,
    moves_images: bool,
    seed: int,
) -> TrainingConfig:
    """The user's values and the recipe's, for an epoch of `n_rows` rows, or of logged queries."""
    names = {declared.name for declared in fields(TrainingParameters)}
    given = {k: v for k, v in check_parameters(parameters).items() if k in names}
    chosen = {name: value(n_rows) if isfunction(value) else value for name, value in recipe.items()}
    config = TrainingConfig(**{**chosen, **given, "seed": seed})
    if not moves_images:
        config = replace(config, flip=False, shift=0)
    config = fit_to_rows(config, n_rows, lengthen=is_auto(parameters.epochs), n_queries=n_queries)
    if is_auto(parameters.batches):
        config = replace(config, batches=_choose_batches(config, supervision))
    if is_auto(parameters.init) and not _has_linear_map(config):
        config = replace(config, init="random")
    return config


def fit_to_rows(
    config: TrainingConfig, n_rows: int, *, lengthen: bool, n_queries: int | None = None
) -> TrainingConfig:
    """The configuration for so many rows: no larger batches and, if allowed, enough epochs."""
    batch_size = min(config.batch_size, n_rows)
    n_steps = -(-n_rows // batch_size)
    if n_queries is not None:
        n_steps = -(-n_queries // queries_of_step(batch_size))
    epochs = max(config.epochs, -(-FEWEST_STEPS // n_steps)) if lengthen else config.epochs
    return replace(config, batch_size=batch_size, epochs=epochs)


def queries_of_step(batch_size: int) -> int:
    """Logged queries of a step of so many items: a quarter of them."""
    return max(1, batch_size // 4)


def _choose_batches(config: TrainingConfig, supervision: Supervision) -> str:
    """Plain batches, unless a query would hardly meet a relevant row in them."""
    is_rare = supervision.density() * (config.batch_size - 1) < 1
    return "anchors" if is_rare and config.gallery == "batch" else "plain"


def _has_linear_map(config: TrainingConfig) -> bool:
    """Whether the encoder has a map to the logits that can start from principal directions."""
    kind = encoder_kind(config.encoder)
    if config.posterior or (kind in KINDS and KINDS[kind].reads_images):
        return False
    return kind == "linear" or not config.hidden or config.skip
