"""Coordinates in the span of RBF anchors as a torch module, for export."""

import torch
from torch import nn

from rankbits.methods._anchors import RbfAnchors


class AnchorCoordinates(nn.Module):
    """exp(-gamma |x - a|^2) basis, in double as in RbfAnchors."""

    def __init__(self, anchors: RbfAnchors) -> None:
        super().__init__()
        rows = torch.tensor(anchors.rows, dtype=torch.float64)
        self.gamma = anchors.gamma
        self.register_buffer("rows", rows)
        self.register_buffer("squares", (rows**2).sum(dim=1))
        self.register_buffer("basis", torch.tensor(anchors.basis, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Coordinates of rows."""
        x, rows = x.double(), self.get_buffer("rows")
        squares = (x**2).sum(dim=1, keepdim=True) + self.get_buffer("squares") - 2 * x @ rows.T
        return torch.exp(-self.gamma * squares.clamp(min=0)) @ self.get_buffer("basis")
