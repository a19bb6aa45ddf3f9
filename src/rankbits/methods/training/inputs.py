"""Rows as a training reads them: a tensor, or the activations of several views of each picture.

Notation: V views, n rows, maps of shape (C, H, W).
"""

import numpy as np
import torch
from torch import Tensor

from rankbits._mapped import unchanged


class Activations:
    """Maps of n rows in V views, read as a tensor of rows would be.

    An index gives the maps of the pictures as they are; `draw` gives one of their views each.
    """

    def __init__(
        self, maps: np.ndarray, device: torch.device, rows: np.ndarray | None = None
    ) -> None:
        self.maps, self.device = maps, device  # (V, rows of the file, C, H, W) float16, mapped
        self.rows = np.arange(maps.shape[1]) if rows is None else rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, C, H, W)."""
        return (len(self.rows), *self.maps.shape[2:])

    def __getitem__(self, chosen: slice | Tensor) -> Tensor:
        rows = self.rows[chosen if isinstance(chosen, slice) else chosen.cpu().numpy()]
        return self._read(np.zeros(len(rows), np.int64), rows)

    def draw(self, chosen: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Maps of rows, each in a view drawn at random."""
        views = rng.integers(len(self.maps), size=len(chosen))
        return self._read(views, self.rows[chosen])

    def select_view(self, view: int) -> "Activations":
        """The rows in one of their views."""
        return Activations(self.maps[view : view + 1], self.device, self.rows)

    def take(self, chosen: np.ndarray) -> "Activations":
        """Some of the rows."""
        return Activations(self.maps, self.device, self.rows[chosen])

    def to(self, device: torch.device) -> "Activations":
        """The same rows, read to another device."""
        return Activations(self.maps, device, self.rows)

    def _read(self, views: np.ndarray, rows: np.ndarray) -> Tensor:
        with unchanged(self.maps):
            return torch.from_numpy(self.maps[views, rows]).to(self.device)


Inputs = Tensor | Activations


def move_to(inputs: Inputs | None, device: torch.device) -> Inputs | None:
    """The rows, if there are any, on a device."""
    return None if inputs is None else inputs.to(device)


def take_rows(inputs: Inputs, rows: np.ndarray) -> Inputs:
    """Some rows, of the same kind."""
    return inputs.take(rows) if isinstance(inputs, Activations) else inputs[torch.from_numpy(rows)]


def read_rows(inputs: Inputs, rows: np.ndarray, rng: np.random.Generator) -> Tensor:
    """Rows of a batch: as they are, or of activations one of their views each."""
    if isinstance(inputs, Activations):
        return inputs.draw(rows, rng)
    return inputs[torch.from_numpy(rows)]
