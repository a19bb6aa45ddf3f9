"""Recipes: what a parameter left at "auto" becomes, by kind of encoder.

One table, so that a better default is one change in one place.
"""

from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """Defaults of one kind of encoder; the names are those of the estimators' parameters."""

    hidden: tuple[int, ...] = ()
    activation: str = "relu"
    normalisation: str = "batch"
    dropout: float = 0.0
    input_dropout: float = 0.0
    skip: bool = False
    alpha: float = 0.5
    alpha_end: float | None = None
    optimizer: str = "adamw"
    learning_rate: float = 3e-3
    weight_decay: float = 1e-2
    schedule: str = "cosine"
    warm_up: float = 0.05
    batch_size: int = 512
    epochs: int = 40
    noise: float = 0.0
    mixup: float = 0.0
    flip: bool = False
    shift: int = 0
    ema: float = 0.0
    validation_fraction: float = 0.0


RECIPES = {
    "linear": Recipe(),
    "mlp": Recipe(hidden=(512,), dropout=0.5, input_dropout=0.2, ema=0.98),
    "cnn": Recipe(
        learning_rate=2e-3, batch_size=256, epochs=30, flip=True, shift=4, dropout=0.2, ema=0.99
    ),
    "backbone": Recipe(hidden=(512,), dropout=0.5, input_dropout=0.2, ema=0.98),
}
FEWEST_STEPS = 100  # a training set of one batch needs more epochs than one of many


def resolve(kind: str, asked: dict[str, Any]) -> Recipe:
    """The recipe of a kind of encoder with every value that is not "auto" replaced."""
    names = {field.name for field in fields(Recipe)}
    given = {name: value for name, value in asked.items() if name in names and not is_auto(value)}
    if "hidden" in given:
        given["hidden"] = tuple(given["hidden"])
    return replace(RECIPES[kind], **given)


def n_epochs(asked: Any, recipe: Recipe, n_steps: int) -> int:
    """Epochs: as asked, or those of the recipe and at least `FEWEST_STEPS` steps."""
    if is_auto(asked):
        return max(recipe.epochs, -(-FEWEST_STEPS // n_steps))
    return recipe.epochs


def is_auto(value: Any) -> bool:
    """Whether a parameter was left to the recipe."""
    return isinstance(value, str) and value == "auto"
