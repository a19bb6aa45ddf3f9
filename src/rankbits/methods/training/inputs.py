"""Rows as a training reads them: a tensor, or rows of which there are several views."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


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
