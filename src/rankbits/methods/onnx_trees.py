"""Boosted trees as a torch module, for export to ONNX."""

import torch
from torch import nn

from rankbits.methods.shallow.shared.trees import Forest


class Trees(nn.Module):
    """The logits of a forest: every row walks down all trees at once, level by level."""

    def __init__(self, forest: Forest) -> None:
        super().__init__()
        n_bits, n_trees, n_nodes = forest.features.shape
        self.n_bits, self.n_trees, self.depth = n_bits, n_trees, forest.depth
        self.n_nodes = n_nodes
        first = torch.arange(n_bits * n_trees)
        self.register_buffer("first_node", first * n_nodes)
        self.register_buffer("first_leaf", first * (n_nodes + 1))
        self.register_buffer("features", torch.tensor(forest.features).reshape(-1))
        for name in ("thresholds", "leaves", "offsets"):
            self.register_buffer(name, torch.tensor(getattr(forest, name)).reshape(-1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        x = x.double()
        place = torch.zeros_like(x[:, :1], dtype=torch.int64)  # in each tree of a row
        for _ in range(self.depth):
            node = place + self.get_buffer("first_node")
            value = x.gather(1, self.get_buffer("features")[node])
            place = 2 * place + 1 + (value > self.get_buffer("thresholds")[node]).to(torch.int64)
        leaf = place - self.n_nodes + self.get_buffer("first_leaf")
        votes = self.get_buffer("leaves")[leaf].reshape(-1, self.n_bits, self.n_trees)
        return votes.sum(dim=2) + self.get_buffer("offsets")
