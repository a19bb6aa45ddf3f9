"""Small pictures whose class is the place of a spot, and a small network to tune to them."""

import numpy as np
import torch
from torch import nn

from rankbits import methods

N_CLASSES, N_ROWS = 3, 600


def draw_pictures():
    """Pictures of 8 x 8 pixels whose class is the place of a bright spot, under noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_CLASSES, N_ROWS)
    x = rng.integers(0, 120, (N_ROWS, 8, 8, 3))
    for row, label in enumerate(y):
        x[row, 2 * label + 1, 2:6] += 100
    return x.astype(np.uint8), y


class Pixels(nn.Module):
    def forward(self, x):
        return x.permute(0, 3, 1, 2) / 128 - 1


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        Pixels(),
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
    )


def build(**params):
    few = {"n_bits": 8, "epochs": 2, "random_state": 0, "tuning_epochs": 3, "n_views": 3}
    return methods.get("talr-ap", **{**few, "encoder": network(), **params})
