"""The plan of a run: every number the trainer needs, checked once."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from rankbits import _check
from rankbits.methods._deep import batches, schedules

OPTIMIZERS = ("adamw", "sgd")
GALLERIES = ("batch", "memory")


@dataclass(frozen=True)
class Plan:
    """How to train. Two runs with equal plans, data and number of threads end bit for bit alike."""

    n_epochs: int = 40
    batch_size: int = 256
    batches: str = "plain"  # or balanced, anchors
    gallery: str = "batch"  # or memory: rank the whole training set, as last encoded
    optimizer: str = "adamw"  # or sgd
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    momentum: float = 0.9  # of sgd
    nesterov: bool = False
    schedule: str = "cosine"
    warm_up: float = 0.0  # share of the run
    clip: float = 0.0  # largest norm of the gradient; 0 for no limit
    trunk_factor: float = 0.1  # of the learning rate, for a trunk that is fine-tuned
    alpha: float = 0.5
    alpha_end: float | None = None
    noise: float = 0.0  # standard deviation, in units of each feature's own
    even_noise: bool = False  # in units of the root of their mean variance instead
    mixup: float = 0.0  # parameter of the Beta law of mixtures; 0 for none
    mix_across: bool = False  # partners of any class, if the loss allows it
    flip: bool = False  # mirror images at random
    shift: int = 0  # move images by up to so many pixels
    ema: float = 0.0  # decay of the average of weights; 0 for none
    score_every: int = 1  # epochs
    patience: int | None = None  # scorings without improvement before the run stops
    n_restarts: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in _LOWEST.items():
            _check.whole(name, getattr(self, name), least)
        if self.patience is not None:
            _check.whole("patience", self.patience, 1)
        for name, (low, high, closed) in _RANGES.items():
            _check.number(name, getattr(self, name), low, high, closed=closed)
        if self.alpha_end is not None:
            _check.number("alpha_end", self.alpha_end, closed=False)
        _check.choice("batches", self.batches, batches.NAMES)
        _check.choice("gallery", self.gallery, GALLERIES)
        _check.choice("optimizer", self.optimizer, OPTIMIZERS)
        _check.choice("schedule", self.schedule, schedules.NAMES)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return asdict(self)


_LOWEST = {"n_epochs": 1, "batch_size": 2, "shift": 0, "score_every": 1, "n_restarts": 1, "seed": 0}
_RANGES = {  # low, high, whether low itself is allowed; high never is
    "learning_rate": (0.0, math.inf, False),
    "weight_decay": (0.0, math.inf, True),
    "momentum": (0.0, 1.0, True),
    "warm_up": (0.0, 1.0, True),
    "clip": (0.0, math.inf, True),
    "trunk_factor": (0.0, math.inf, True),
    "alpha": (0.0, math.inf, False),
    "noise": (0.0, math.inf, True),
    "mixup": (0.0, math.inf, True),
    "ema": (0.0, 1.0, True),
}
