"""Small changes of pictures that must not change their relevance."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rankbits.methods.training.config import TrainingConfig


def build_mover(config: TrainingConfig) -> Callable[[Tensor, np.random.Generator], Tensor]:
    """The function that moves the images of a batch as a configuration says."""
    return lambda x, rng: move_images(x, config.flip, config.shift, rng)


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
