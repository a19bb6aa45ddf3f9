"""Augmentations: small changes of the training rows that must not change their relevance."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rankbits.methods.training.inputs import Inputs, read_rows


@dataclass(frozen=True)
class Mixture:
    """Partners of the rows of a batch, and the share that each row keeps."""

    partners: np.ndarray
    weights: np.ndarray


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


def move_images(x: Tensor, flip: bool, shift: int, rng: np.random.Generator) -> Tensor:
    """Images (n, H, W, C) mirrored at random and moved by up to `shift` pixels.

    What moves in is the mirror image of the pixels at the edge.
    """
    if flip:
        mirrored = torch.from_numpy(rng.random(len(x)) < 0.5).to(x.device)
        x = torch.where(mirrored[:, None, None, None], x.flip(2), x)
    if shift:
        moves = rng.integers(-shift, shift + 1, (2, len(x)))
        down, right = torch.from_numpy(moves).to(x.device)
        lines = _reflect(down[:, None] + torch.arange(x.shape[1], device=x.device), x.shape[1])
        columns = _reflect(right[:, None] + torch.arange(x.shape[2], device=x.device), x.shape[2])
        first = torch.arange(len(x), device=x.device)[:, None, None]
        x = x[first, lines[:, :, None], columns[:, None, :]]
    return x


def _reflect(places: Tensor, size: int) -> Tensor:
    """Places beyond either end of 0..size-1 turned back at that end."""
    if size == 1:
        return torch.zeros_like(places)
    period = 2 * (size - 1)
    places = places.remainder(period)
    return torch.minimum(places, period - places)
