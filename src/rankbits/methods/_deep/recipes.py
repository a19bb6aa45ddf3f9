"""Recipes: what a parameter left at "auto" becomes, by kind of encoder and of supervision.

One table, so that a better default is one change in one place.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

from rankbits.affinity import Judgements, Neighbours
from rankbits.methods._supervision import Supervision


@dataclass(frozen=True)
class Recipe:
    """Defaults of one kind of fit; the names are those of the estimators' parameters."""

    scaling: str = "each"
    init: str = "random"
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
    even_noise: bool = False
    mixup: float = 0.0
    flip: bool = False
    shift: int = 0
    ema: float = 0.0
    posterior: int = 0
    validation_fraction: float = 0.0


Key = str | tuple[str, str]  # an encoder, or an encoder and a supervision, which goes first
RECIPES: dict[Key, Recipe] = {
    "linear": Recipe(),
    ("linear", "classes"): Recipe(
        scaling="common", alpha_end=4.0, learning_rate=1e-2, noise=0.7, even_noise=True
    ),
    ("linear", "distances"): Recipe(
        scaling="common", init="itq", alpha=2.0, weight_decay=0.0, batch_size=1280, noise=0.3
    ),
    ("linear", "judgements"): Recipe(
        scaling="common", init="itq", alpha=2.0, learning_rate=1e-3, batch_size=512, epochs=100
    ),
    ("mlp", "judgements"): Recipe(
        scaling="common",
        init="itq",
        hidden=(512,),
        dropout=0.5,
        input_dropout=0.2,
        skip=True,
        alpha=2.0,
        learning_rate=3e-4,
        epochs=300,
        ema=0.98,
    ),
    "mlp": Recipe(hidden=(512,), dropout=0.5, input_dropout=0.2, ema=0.98),
    ("mlp", "posterior"): Recipe(
        scaling="common",
        hidden=(256,),
        activation="gelu",
        normalisation="none",
        alpha_end=16.0,
        learning_rate=5e-3,
        weight_decay=1e-3,
        batch_size=1024,
        epochs=17,
        posterior=3,
    ),
    "cnn": Recipe(
        learning_rate=2e-3, batch_size=256, epochs=30, flip=True, shift=4, dropout=0.2, ema=0.99
    ),
    "backbone": Recipe(hidden=(512,), dropout=0.5, input_dropout=0.2, ema=0.98),
    ("backbone", "tuned"): Recipe(
        hidden=(512,),
        dropout=0.5,
        input_dropout=0.2,
        batch_size=128,
        epochs=5,
        flip=True,
        shift=4,
        ema=0.99,
    ),
}
FEWEST_ROWS, MOST_CLASSES = 500, 200  # of a posterior
FEWEST_STEPS = 100  # a training set of one batch needs more epochs than one of many


def resolve(
    kind: str, supervision: Supervision, asked: dict[str, Any], own: dict[Key, dict[str, Any]]
) -> Recipe:
    """The recipe of an encoder under a supervision, every value that is not "auto" replaced.

    `own` has the values in which a method differs, by the key of the recipe.
    """
    names = {field.name for field in fields(Recipe)}
    given = {name: value for name, value in asked.items() if name in names and not is_auto(value)}
    if "hidden" in given:
        given["hidden"] = tuple(given["hidden"])
    key: Key = kind
    specials = {
        supervision_kind(supervision): True,
        "posterior": _has_posterior(supervision, asked, own),
        "tuned": bool(asked["fine_tune"]),
    }
    for special, is_meant in specials.items():
        if (kind, special) in RECIPES and is_meant:
            key = kind, special
    return replace(RECIPES[key], **{**own.get(key, {}), **given})


def of_head(tuned: Recipe, own: dict[Key, dict[str, Any]]) -> Recipe:
    """The recipe by which a head is trained before its trunk is tuned: that of a frozen trunk."""
    frozen = replace(RECIPES["backbone"], **own.get("backbone", {}))
    shape = ("hidden", "activation", "normalisation", "dropout", "input_dropout", "skip")
    return replace(frozen, **{name: getattr(tuned, name) for name in shape})


def _has_posterior(
    supervision: Supervision, asked: dict[str, Any], own: dict[Key, dict[str, Any]]
) -> bool:
    """Whether classes are learned first: as asked, else where rows are many and classes few.

    Asking for hidden layers or a kernel of one's own is asking for bits that read the rows.
    """
    wanted, classes = asked.get("posterior", 0), supervision.classes
    if not is_auto(wanted):
        return bool(wanted)
    if own.get(("mlp", "posterior"), {}).get("posterior") == 0:
        return False  # the method does better without
    if classes is None or asked["kernel"] is not None or not is_auto(asked["hidden"]):
        return False
    n_classes = len(set(classes.tolist()))
    return len(classes) >= max(FEWEST_ROWS, 10 * n_classes) and n_classes <= MOST_CLASSES


def supervision_kind(supervision: Supervision) -> str:
    """What y says: "classes", "tags", "distances", "judgements", or "levels" for all else."""
    if supervision.classes is not None:
        return "classes"
    if supervision.tags is not None:
        return "tags"
    if isinstance(supervision.affinity, Judgements):
        return "judgements"
    return "distances" if isinstance(supervision.affinity, Neighbours) else "levels"


def n_epochs(asked: Any, recipe: Recipe, n_steps: int) -> int:
    """Epochs: as asked, or those of the recipe and at least `FEWEST_STEPS` steps."""
    if is_auto(asked):
        return max(recipe.epochs, -(-FEWEST_STEPS // n_steps))
    return recipe.epochs


def is_auto(value: Any) -> bool:
    """Whether a parameter was left to the recipe."""
    return isinstance(value, str) and value == "auto"
