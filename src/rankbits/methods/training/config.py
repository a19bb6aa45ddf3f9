"""The configuration of a training: every hyper-parameter with its value, resolved once, frozen.

A value is the user's, checked once by `read_parameters`, or, where the user left "auto", that of
the recipe. What depends on the data is settled here too: a batch is no larger than the training
set, a training set of few batches gets more epochs, and only images are mirrored and moved.
"""

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from inspect import isfunction
from typing import Any

from rankbits.methods.parameters.fields import (
    check_parameters,
    flag,
    integer,
    is_auto,
    parameter,
    reported_values,
)
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.kinds import KINDS
from rankbits.methods.training.parameters import TrainingParameters
from rankbits.methods.training.recipes import COMMON, encoder_kind

FEWEST_STEPS = 100  # a training set of one batch needs more epochs than one of many


@dataclass(frozen=True)
class Epoch:
    """What a training goes through again and again: so many rows, in steps of a batch."""

    n_rows: int

    def count_steps(self, batch_size: int) -> int:
        """Steps of one epoch."""
        return -(-self.n_rows // batch_size)


class TrainingConfig(TrainingParameters):
    """The hyper-parameters of one training, all of them known.

    Two trainings with equal configurations, data and number of threads end bit for bit alike. The
    constructor trusts its values: `read_parameters` has checked the user's, and a test those of the
    recipes. Nothing changes them afterwards.
    """

    seed: int = parameter(0, integer(0))
    mixes_classes: bool = parameter(False, flag)  # whether mixup takes rows of other classes too

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            raise FrozenInstanceError(f"cannot assign to {name!r} of a TrainingConfig")
        super().__setattr__(name, value)

    def to_json(self) -> dict[str, Any]:
        """The values that decide what is learned, for reports and fingerprints."""
        return reported_values(self)


def read_parameters(declared: TrainingParameters) -> TrainingParameters:
    """The parameters of a method, checked; those of training with their clean values."""
    values = check_parameters(declared)
    names = [field.name for field in fields(TrainingParameters)]
    return TrainingParameters(**{name: values[name] for name in names if name in values})


def common_config(**values: Any) -> TrainingConfig:
    """The common recipe with some values replaced."""
    return TrainingConfig(**{**COMMON, **values})


def resolve_config(
    parameters: TrainingParameters,
    recipe: Mapping[str, Any],
    supervision: Supervision,
    *,
    epoch: Epoch,
    moves_images: bool,
    seed: int,
) -> TrainingConfig:
    """The user's values and the recipe's, for a training of such epochs."""
    values = {**vars(parameters), "seed": seed}
    for name, value in recipe.items():
        if is_auto(values[name]):
            values[name] = value(epoch.n_rows) if isfunction(value) else value
    if not moves_images:
        values |= {"flip": False, "shift": 0}
    values |= _fit_sizes(values, epoch, lengthen=is_auto(parameters.epochs))
    if is_auto(parameters.batches):
        values["batches"] = _choose_batches(values, supervision)
    if is_auto(parameters.init) and not _has_linear_map(values):
        values["init"] = "random"
    return TrainingConfig(**values)


def fit_to_rows(config: TrainingConfig, n_rows: int) -> TrainingConfig:
    """The configuration for so many rows: no larger batches, and enough epochs."""
    return replace(config, **_fit_sizes(vars(config), Epoch(n_rows), lengthen=True))


def _fit_sizes(values: Mapping[str, Any], epoch: Epoch, *, lengthen: bool) -> dict[str, Any]:
    """A batch no larger than the rows and, if allowed, epochs that make enough steps."""
    batch_size, epochs = min(values["batch_size"], epoch.n_rows), values["epochs"]
    if lengthen:
        epochs = max(epochs, -(-FEWEST_STEPS // epoch.count_steps(batch_size)))
    return {"batch_size": batch_size, "epochs": epochs}


def _choose_batches(values: Mapping[str, Any], supervision: Supervision) -> str:
    """Plain batches, unless a query would hardly meet a relevant row in them."""
    is_rare = supervision.density() * (values["batch_size"] - 1) < 1
    return "anchors" if is_rare and values["gallery"] == "batch" else "plain"


def _has_linear_map(values: Mapping[str, Any]) -> bool:
    """Whether the encoder has a map to the logits that can start from principal directions."""
    kind = encoder_kind(values["encoder"])
    if values["posterior"] or (kind in KINDS and KINDS[kind].reads_images):
        return False
    return bool(kind == "linear" or not values["hidden"] or values["skip"])
