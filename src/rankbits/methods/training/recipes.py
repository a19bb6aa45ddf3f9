"""Recipes: what a hyper-parameter left at "auto" becomes, by kind of encoder and of supervision.

One table: a better default is one change in one place. A recipe names only what differs from
`COMMON`; a method names, in its `_recipes`, what differs for its loss.
"""

from collections.abc import Mapping
from typing import Any

from torch import nn

from rankbits import _check
from rankbits.affinity import Judgements, NearestRanks, Neighbours
from rankbits.methods.parameters.fields import is_auto
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.kinds import KINDS
from rankbits.methods.training.parameters import TrainingParameters

Key = str | tuple[str, str]  # a kind of encoder, or it and a special case, which has precedence
Recipe = Mapping[
    str, Any
]  # by name of the hyper-parameter: a value, or a function of the rows' number
Recipes = Mapping[Key, Recipe]

FEWEST_ROWS, MOST_CLASSES = 500, 200  # of data on which a class posterior is learned first

FULL_RATE_ROWS = 10_000


def _rate_from_itq(n_rows: int) -> float:
    """The learning rate of a map that starts from ITQ: the fewer rows, the less it should move."""
    return 3e-3 * min(1.0, n_rows / FULL_RATE_ROWS)


COMMON: Recipe = {
    "encoder": "mlp",
    "scaling": "each",
    "init": "random",
    "hidden": (),
    "activation": "relu",
    "normalization": "batch",
    "dropout": 0.0,
    "input_dropout": 0.0,
    "skip": False,
    "posterior": 0,
    "graded": False,
    "alpha": 0.5,
    "alpha_end": None,
    "optimizer": "adamw",
    "learning_rate": 3e-3,
    "weight_decay": 1e-2,
    "precision": "single",
    "nesterov": False,
    "schedule": "cosine",
    "warm_up": 0.05,
    "batch_size": 512,
    "batches": "plain",
    "epochs": 40,
    "noise": 0.0,
    "noise_scaling": "each",
    "mixup": 0.0,
    "flip": False,
    "shift": 0,
    "ema": 0.0,
    "validation_fraction": 0.0,
}
_BY_DISTANCE: Recipe = {
    "scaling": "common",
    "init": "itq",
    "alpha": 2.0,
    "learning_rate": _rate_from_itq,
    "weight_decay": 0.0,
    "batch_size": 1280,
    "noise": 0.3,
}
_REGULARIZED: Recipe = {"hidden": (512,), "dropout": 0.5, "input_dropout": 0.2, "ema": 0.98}
RECIPES: Recipes = {
    "linear": {},
    ("linear", "classes"): {
        "scaling": "common",
        "alpha_end": 4.0,
        "learning_rate": 1e-2,
        "noise": 0.7,
        "noise_scaling": "common",
    },
    ("linear", "distances"): _BY_DISTANCE,
    ("linear", "judgements"): {
        "scaling": "common",
        "init": "itq",
        "alpha": 2.0,
        "learning_rate": 1e-3,
        "epochs": 100,
    },
    "mlp": _REGULARIZED,
    ("mlp", "judgements"): {
        **_REGULARIZED,
        "scaling": "common",
        "init": "itq",
        "skip": True,
        "alpha": 2.0,
        "learning_rate": 3e-4,
        "epochs": 300,
    },
    ("mlp", "posterior"): {
        "scaling": "common",
        "hidden": (256,),
        "activation": "gelu",
        "normalization": "none",
        "alpha_end": 16.0,
        "learning_rate": 5e-3,
        "weight_decay": 1e-3,
        "batch_size": 1024,
        "epochs": 17,
        "posterior": 3,
    },
    "cnn": {
        "learning_rate": 2e-3,
        "batch_size": 256,
        "epochs": 30,
        "flip": True,
        "shift": 4,
        "dropout": 0.2,
        "ema": 0.99,
    },
    "resnet": {
        "activation": "gelu",
        "learning_rate": 2e-3,
        "precision": "mixed",
        "batch_size": 256,
        "epochs": 20,
        "flip": True,
        "shift": 2,
        "ema": 0.99,
    },
    ("resnet", "posterior"): {
        "activation": "gelu",
        "alpha_end": 16.0,
        "optimizer": "sgd",
        "learning_rate": 0.4,
        "weight_decay": 5e-4,
        "precision": "mixed",
        "nesterov": True,
        "schedule": "one-cycle",
        "warm_up": 0.0,
        "batch_size": 256,
        "epochs": 20,
        "flip": True,
        "shift": 2,
        "posterior": 1,
    },
    "backbone": _REGULARIZED,
    ("backbone", "distances"): _BY_DISTANCE,
    ("backbone", "tuned"): {
        **_REGULARIZED,
        "batch_size": 128,
        "epochs": 5,
        "flip": True,
        "shift": 4,
        "ema": 0.99,
    },
}
TWO_MAPS: Recipes = {  # what differs where queries have a map of their own
    ("mlp", "posterior"): {"epochs": 40},
}


def choose_recipe(
    parameters: TrainingParameters, supervision: Supervision, method_recipes: Recipes
) -> dict[str, Any]:
    """A value for every hyper-parameter that may be "auto"."""
    encoder = choose_encoder(parameters, supervision)
    key = _choose_key(encoder, parameters, supervision, method_recipes)
    recipe = {**_compose_recipe(key, parameters, method_recipes), "encoder": encoder}
    is_tuned = encoder_kind(encoder) == "backbone" and bool(parameters.fine_tune)
    return {**recipe, "precision": "mixed"} if is_tuned else recipe


def beliefs_recipe(parameters: TrainingParameters, method_recipes: Recipes) -> dict[str, Any]:
    """The values by which bits are trained that read the beliefs of a network of images."""
    return _compose_recipe(("mlp", "posterior"), parameters, method_recipes)


def _compose_recipe(
    key: Key, parameters: TrainingParameters, method_recipes: Recipes
) -> dict[str, Any]:
    """The common values, and what differs for the key, for two maps and for the method."""
    two_maps = TWO_MAPS.get(key, {}) if parameters.queries != "same" else {}
    return {**COMMON, **RECIPES.get(key, {}), **two_maps, **method_recipes.get(key, {})}


def frozen_backbone_recipe(method_recipes: Recipes) -> dict[str, Any]:
    """The values by which the head of a backbone is trained before the backbone is tuned."""
    return {**COMMON, **RECIPES["backbone"], **method_recipes.get("backbone", {})}


def choose_encoder(parameters: TrainingParameters, supervision: Supervision) -> "str | nn.Module":
    """The user's encoder, or the one that suits y.

    Where distances between the rows say what is relevant, a linear map keeps them best; hidden
    layers are for labels, which the rows do not show.
    """
    if not is_auto(parameters.encoder):
        return parameters.encoder
    return "linear" if _keeps_distances(parameters, supervision) else "mlp"


def encoder_kind(encoder: "str | nn.Module") -> str:
    """The kind of an encoder: one of `kinds.KINDS`, or "backbone"."""
    if isinstance(encoder, nn.Module):
        return "backbone"
    return _check.choice("encoder", encoder, (*KINDS, "backbone"))


def supervision_kind(supervision: Supervision) -> str:
    """What y says: "classes", "tags", "distances", "judgements", or "levels" for all else."""
    if supervision.classes is not None:
        return "classes"
    if supervision.tags is not None:
        return "tags"
    if isinstance(supervision.affinity, Judgements):
        return "judgements"
    by_distance = (Neighbours, NearestRanks)
    return "distances" if isinstance(supervision.affinity, by_distance) else "levels"


def _keeps_distances(parameters: TrainingParameters, supervision: Supervision) -> bool:
    """Whether distances say what is relevant, and the user gave no hidden layers."""
    has_layers = not is_auto(parameters.hidden) and len(parameters.hidden) > 0
    return supervision_kind(supervision) == "distances" and not has_layers


def _choose_key(
    encoder: "str | nn.Module",
    parameters: TrainingParameters,
    supervision: Supervision,
    method_recipes: Recipes,
) -> Key:
    kind = encoder_kind(encoder)
    has_posterior = _learns_posterior(kind, parameters, supervision, method_recipes)
    if kind == "backbone" and has_posterior:
        return "mlp", "posterior"  # its head is that of features from elsewhere
    applies = {
        supervision_kind(supervision): kind != "backbone"
        or _keeps_distances(parameters, supervision),
        "posterior": has_posterior,
        "tuned": bool(parameters.fine_tune),
    }
    special = [case for case, does in applies.items() if does and (kind, case) in RECIPES]
    return (kind, special[-1]) if special else kind


def learns_classes(encoder: "str | nn.Module") -> bool:
    """Whether it is the encoder's own network that learns the classes before the bits."""
    kind = encoder_kind(encoder)
    return kind in KINDS and KINDS[kind].learns_classes


def _learns_posterior(
    kind: str,
    parameters: TrainingParameters,
    supervision: Supervision,
    method_recipes: Recipes,
) -> bool:
    """Whether classes are learned first: as the user says, else if rows are many and classes few.

    Whoever gives hidden layers or a kernel to an encoder of vectors wants bits that read the rows.
    """
    if not is_auto(parameters.posterior):
        return bool(parameters.posterior)
    if method_recipes.get(("mlp", "posterior"), {}).get("posterior") == 0:
        return False  # the method does better without
    classes = supervision.classes
    has_layers = not is_auto(parameters.hidden) and not learns_classes(kind)
    if classes is None or parameters.kernel is not None or has_layers:
        return False
    n_classes = len(set(classes.tolist()))
    return len(classes) >= max(FEWEST_ROWS, 10 * n_classes) and n_classes <= MOST_CLASSES
