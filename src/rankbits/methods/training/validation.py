"""Validation inside `fit`: how well rows that were held out of the training set rank each other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.methods.supervision import Supervision
from rankbits.methods.training.encoders import encode_rows
from rankbits.methods.training.inputs import Inputs
from rankbits.methods.training.trained_part import has_two_maps, item_map, query_map

MOST_ROWS = 2048
_GRID = 1024  # bins of the scores of real-valued queries

Objective = Callable[..., Tensor]  # (phi, levels, gallery=, own=) -> value of each query


class HardScore:
    """The objective itself at ±1 codes of the held-out rows, at most 2,048 of them.

    They rank each other or, where half of them have nothing relevant among them, all rows. Queries
    that stay real-valued are scored on a fine grid: what shares a bin counts as tied.
    """

    def __init__(
        self,
        inputs: Inputs,
        supervision: Supervision,
        rows: np.ndarray,
        objective: Objective,
        *,
        query_inputs: Inputs | None = None,
        has_real_queries: bool = False,
    ) -> None:
        self.inputs, self.objective = inputs, objective
        self.are_items = query_inputs is None
        self.query_inputs = inputs if query_inputs is None else query_inputs
        self.has_real_queries = has_real_queries
        self.queries = torch.from_numpy(rows[:: -(-len(rows) // MOST_ROWS)])
        levels = self._find_square(supervision) if self.are_items else None
        self.is_square = levels is not None
        if levels is None:
            levels = supervision.levels(self.queries.numpy(), np.arange(len(inputs)))
        self.levels = torch.from_numpy(levels).to(inputs.device)

    def _find_square(self, supervision: Supervision) -> np.ndarray | None:
        """Levels of the held-out rows among each other; None if half of them have no positive."""
        queries = self.queries.numpy()
        levels = supervision.levels(queries, queries)
        np.fill_diagonal(levels, 0)
        return levels if (levels > 0).any(axis=1).mean() >= 0.5 else None

    def __call__(self, module: nn.Module) -> float:
        """Mean over the queries that have a positive."""
        if has_two_maps(module) or not self.are_items:
            values = self._rank_items(module)
        elif self.is_square:
            values = self.objective(_codes(module, self.inputs[self.queries]), self.levels)
        else:
            codes = _codes(module, self.inputs)
            own = self.queries.to(codes.device)
            values = self.objective(codes[own], self.levels, gallery=codes, own=own)
        known = values[~values.isnan()]
        return float(known.mean()) if len(known) else 0.0

    def _rank_items(self, module: nn.Module) -> Tensor:
        """Values of the queries against the items, each encoded by the map of its side."""
        rows, lists = self.query_inputs[self.queries], dict[str, Any]()
        if self.has_real_queries:
            queries = torch.tanh(encode_rows(query_map(module), rows))
            lists["n_bins"] = _GRID
        else:
            queries = _codes(query_map(module), rows)
        items = _codes(item_map(module), rows if self.is_square else self.inputs)
        if self.are_items:
            own = torch.arange(len(rows)) if self.is_square else self.queries
            lists["own"] = own.to(items.device)
        return self.objective(queries, self.levels, gallery=items, **lists)


def _codes(module: nn.Module, inputs: Inputs) -> Tensor:
    logits = encode_rows(module, inputs)
    return torch.where(logits > 0, 1.0, -1.0)
