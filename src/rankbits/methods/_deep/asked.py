"""What a fit is asked for, checked before any work: y, the kind of encoder, the plan."""

from typing import Any

from torch import nn

from rankbits import _check
from rankbits.errors import InputError
from rankbits.methods._deep import recipes
from rankbits.methods._deep.plan import Plan
from rankbits.methods._deep.recipes import Recipe
from rankbits.methods._supervision import Supervision

_KINDS = ("linear", "mlp", "cnn", "backbone")
_KINDS_OF_Y = {
    "classes": "class labels",
    "tags": "a multi-hot matrix",
    "distances": "None (levels by distance)",
    "judgements": "sparse judgements",
    "levels": "an affinity",
}


def check_cheap_things(hasher: Any, y: Any) -> None:
    """What can be refused before anything is computed."""
    hasher._asked_bits()
    if y is None:
        check_kind(hasher, "distances")
    if hasher.scoring is not None and not callable(hasher.scoring):
        raise InputError(
            "scoring must be None or a function of the encoder that returns a number, got "
            f"{_check.describe(hasher.scoring)}"
        )


def check_kind(hasher: Any, came: str) -> None:
    """Refuse y of a kind that the method's loss cannot use."""
    takes = hasher._takes
    if takes and came not in takes:
        wanted = " or ".join(_KINDS_OF_Y[name] for name in takes)
        got = f"got {_KINDS_OF_Y[came]}"
        if came == "distances":
            got = "it requires y to be passed, but the target y is None"
        raise InputError(
            f"y must be {wanted} for {type(hasher).__name__}, {got}; talr-ap and talr-ndcg take any"
        )


def kind_of(hasher: Any) -> tuple[str, nn.Module | None]:
    """The kind of encoder, and the user's own trunk if one was given."""
    if isinstance(hasher.encoder, nn.Module):
        return "backbone", hasher.encoder
    kind = _check.choice("encoder", hasher.encoder, _KINDS)
    is_own = kind == "backbone" and isinstance(hasher.backbone, nn.Module)
    return kind, hasher.backbone if is_own else None


def n_anchors(hasher: Any, n: int) -> int:
    if hasher.kernel is None:
        return 0
    _check.choice("kernel", hasher.kernel, ("rbf",))
    return min(_check.whole("n_anchors", hasher.n_anchors, 1), n)


def plan_of(
    hasher: Any, recipe: Recipe, n: int, batches: str, seed: int, epochs: Any = "auto"
) -> Plan:
    """The plan of training on n rows by a recipe; `epochs` is what was asked for."""
    batch_size = min(recipe.batch_size, n)
    return Plan(
        n_epochs=recipes.n_epochs(epochs, recipe, -(-n // max(batch_size, 1))),
        batch_size=batch_size,
        batches=batches,
        gallery=hasher.gallery,
        optimizer=recipe.optimizer,
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        nesterov=bool(hasher.nesterov),
        schedule=recipe.schedule,
        warm_up=recipe.warm_up,
        clip=hasher.clip,
        trunk_factor=hasher.backbone_rate,
        alpha=recipe.alpha,
        alpha_end=recipe.alpha_end,
        noise=recipe.noise,
        even_noise=recipe.even_noise,
        mixup=recipe.mixup,
        flip=recipe.flip,
        shift=recipe.shift,
        ema=recipe.ema,
        score_every=hasher.score_every,
        patience=hasher.patience,
        n_restarts=hasher.n_restarts,
        seed=seed,
    )


def batches_of(hasher: Any, supervision: Supervision, batch_size: int) -> str:
    """Plain batches, unless a query would hardly meet a positive in them."""
    if not recipes.is_auto(hasher.batches):
        return str(hasher.batches)
    is_rare = supervision.density() * (batch_size - 1) < 1
    return "anchors" if is_rare and hasher.gallery == "batch" else "plain"
