"""The methods that are not trained by gradients as torch modules, for export to ONNX.

They compute in double precision, as the methods themselves do, so that the bits are the same.
"""

import numpy as np
import torch
from torch import nn

from rankbits.methods.shallow.kernels import RbfAnchors


class Hyperplanes(nn.Module):
    """(x - mean) planes, as in LinearHasher."""

    def __init__(self, mean: np.ndarray, planes: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float64))
        self.register_buffer("planes", torch.tensor(planes, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        return (x.double() - self.get_buffer("mean")) @ self.get_buffer("planes")


class Offsets(nn.Module):
    """Logits plus an offset for each bit, as in MACHash."""

    def __init__(self, offsets: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("offsets", torch.tensor(offsets, dtype=torch.float64))

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        return logits + self.get_buffer("offsets")


class UnitRows(nn.Module):
    """x planes + offsets, x scaled to length 1, as in Distilled."""

    def __init__(self, planes: np.ndarray, offsets: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("planes", torch.tensor(planes, dtype=torch.float64))
        self.register_buffer("offsets", torch.tensor(offsets, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        x = x.double()
        for size in (x.abs().amax(dim=1, keepdim=True), None):
            size = torch.sqrt((x**2).sum(dim=1, keepdim=True)) if size is None else size
            x = x / torch.where(size > 0, size, torch.ones_like(size))
        return x @ self.get_buffer("planes") + self.get_buffer("offsets")


class ChosenFeatures(nn.Module):
    """Some columns of x less their means, as in Sign."""

    def __init__(self, columns: np.ndarray, mean: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("columns", torch.tensor(columns, dtype=torch.int64))
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        chosen = x.index_select(1, self.get_buffer("columns"))
        return chosen.double() - self.get_buffer("mean")


class AnchorFeatures(nn.Module):
    """exp(-gamma |x - a|²), times the basis if there is one, as in RbfAnchors."""

    def __init__(self, anchors: RbfAnchors) -> None:
        super().__init__()
        rows = torch.tensor(anchors.rows, dtype=torch.float64)
        self.gamma, self.has_basis = anchors.gamma, anchors.basis is not None
        self.register_buffer("rows", rows)
        self.register_buffer("squares", (rows**2).sum(dim=1))
        if anchors.basis is not None:
            self.register_buffer("basis", torch.tensor(anchors.basis, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Features or coordinates of rows."""
        x, rows = x.double(), self.get_buffer("rows")
        squares = (x**2).sum(dim=1, keepdim=True) + self.get_buffer("squares") - 2 * x @ rows.T
        features = torch.exp(-self.gamma * squares.clamp(min=0))
        return features @ self.get_buffer("basis") if self.has_basis else features
