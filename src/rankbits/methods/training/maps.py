"""One map for queries and items, or one for each.

The module that a training moves is a map from rows to logits, or two of them side by side. Whoever
encodes rows asks here for the map of their side, so that nobody else has to tell the cases apart.
"""

import copy

from torch import nn


class TwoMaps(nn.Module):
    """A map for items, and one for queries that starts from the same weights."""

    def __init__(self, items: nn.Module) -> None:
        super().__init__()
        self.items, self.queries = items, copy.deepcopy(items)


def item_map(module: nn.Module) -> nn.Module:
    """The map that encodes items."""
    return module.items if isinstance(module, TwoMaps) else module


def query_map(module: nn.Module) -> nn.Module:
    """The map that encodes queries."""
    return module.queries if isinstance(module, TwoMaps) else module


def maps_of(module: nn.Module) -> list[nn.Module]:
    """All maps of a module, each once."""
    return [module.items, module.queries] if isinstance(module, TwoMaps) else [module]


def has_two_maps(module: nn.Module) -> bool:
    """Whether queries are encoded by a map of their own."""
    return isinstance(module, TwoMaps)
