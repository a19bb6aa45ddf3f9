"""Rows as a training reads them: which rows, in which of their views, and how they are changed.

They are a tensor, or rows of which there are several views. A batch of them may be mixed and get
noise, and some of them are held out for validation.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankbits.errors import InputError
from rankbits.methods.supervision import Supervision

_SPLIT_STREAM = 0x5EED  # keeps the split's draws apart from those of restarts and epochs


class RowViews(ABC):
    """Rows in several views, read as a tensor of rows would be.

    An index gives the rows in their first view; `draw` gives one of their views each.
    """

    device: torch.device

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Of a tensor of the rows in one view."""

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, chosen: slice | Tensor) -> Tensor:
        """Some rows in their first view."""

    @abstractmethod
    def draw(self, chosen: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Rows, each in a view drawn at random."""

    @abstractmethod
    def take(self, chosen: np.ndarray) -> "RowViews":
        """Some of the rows."""

    @abstractmethod
    def to(self, device: torch.device) -> "RowViews":
        """The same rows, read to another device."""


Inputs = Tensor | RowViews
Augment = Callable[[Tensor, np.random.Generator], Tensor]  # the rows of a batch, changed a little


def leave_rows(x: Tensor, rng: np.random.Generator) -> Tensor:
    """Rows as they are."""
    return x


@dataclass(frozen=True)
class Mixture:
    """Partners of the rows of a batch, and the share that each row keeps."""

    partners: np.ndarray
    weights: np.ndarray


def take_rows(inputs: Inputs, rows: np.ndarray) -> Inputs:
    """Some rows, of the same kind."""
    return inputs.take(rows) if isinstance(inputs, RowViews) else inputs[torch.from_numpy(rows)]


def read_rows(inputs: Inputs, rows: np.ndarray, rng: np.random.Generator) -> Tensor:
    """Rows of a batch: as they are, or one of their views each."""
    if isinstance(inputs, RowViews):
        return inputs.draw(rows, rng)
    return inputs[torch.from_numpy(rows)]


def draw_mixture(
    rows: np.ndarray, classes: np.ndarray | None, mixup: float, rng: np.random.Generator
) -> Mixture | None:
    """Draw a share λ from Beta(mixup, mixup), at least a half, and a partner for each row.

    The partner is of the row's own class, so that the levels of the batch stay true; without
    classes it is another row of the batch, and the loss has to know of it.
    """
    if mixup == 0:
        return None
    weights = rng.beta(mixup, mixup, len(rows))
    weights = np.maximum(weights, 1 - weights)
    if classes is None:
        return Mixture(rng.permutation(rows), weights)
    order = np.argsort(classes, kind="stable")
    starts = np.searchsorted(classes[order], classes[rows], "left")
    ends = np.searchsorted(classes[order], classes[rows], "right")
    return Mixture(order[rng.integers(starts, ends)], weights)


def mix_rows(
    inputs: Inputs,
    rows: np.ndarray,
    mixture: Mixture | None,
    part: slice,
    rng: np.random.Generator,
) -> Tensor:
    """The rows of a process's part of the batch, mixed with their partners."""
    x = read_rows(inputs, rows[part], rng)
    if mixture is None:
        return x
    others = read_rows(inputs, mixture.partners[part], rng)
    weights = torch.from_numpy(mixture.weights[part]).to(x.device, torch.float32)
    weights = weights.reshape(-1, *[1] * (x.dim() - 1))
    return weights * x.float() + (1 - weights) * others.float()


def add_noise(x: Tensor, scale: Tensor, noise: float, draws: Tensor) -> Tensor:
    """Gaussian noise in units of each feature's scale; `draws` are standard normal."""
    return x + noise * scale * draws


@dataclass(frozen=True)
class RowSplit:
    """Rows to train on and rows to score on, both ascending."""

    train: np.ndarray
    held_out: np.ndarray

    @property
    def holds_out(self) -> bool:
        """Whether rows are kept to score on."""
        return len(self.held_out) > 0

    def take_training(self, inputs: Inputs) -> Inputs:
        """The inputs of the training rows; all of them, not copied, if none is held out."""
        return take_rows(inputs, self.train) if self.holds_out else inputs

    def to_json(self) -> dict[str, Any]:
        """Sizes and a hash of the held-out rows."""
        digest = hashlib.sha256(self.held_out.astype("<i8").tobytes()).hexdigest()
        return {"train": len(self.train), "held_out": len(self.held_out), "sha256": digest}


def keep_all(n: int) -> RowSplit:
    """A split of n rows that holds out none."""
    return RowSplit(np.arange(n), np.empty(0, np.int64))


def split_rows(supervision: Supervision, fraction: float, seed: int) -> RowSplit:
    """Hold out a random share of the rows; the rest must still say what is relevant."""
    n = len(supervision)
    n_held_out = round(fraction * n)
    if fraction > 0 and not 2 <= n_held_out <= n - 2:
        raise InputError(
            f"validation_fraction must leave two rows on either side, got {fraction} of {n} rows"
        )
    order = np.random.default_rng([seed, _SPLIT_STREAM]).permutation(n)
    split = RowSplit(np.sort(order[n_held_out:]), np.sort(order[:n_held_out]))
    if n_held_out:
        supervision.take(split.train).check_contrast()
    return split
