"""Methods whose hash functions are boosted trees: the logits are those of a `Forest`."""

from typing import Any, ClassVar

import numpy as np

from rankbits.errors import FileFormatError
from rankbits.methods.parameters.fields import attribute
from rankbits.methods.shallow.shared.learned import ArrayHasher, Shapes
from rankbits.methods.shallow.shared.trees import Forest, TreeSettings

_BLOCK_ROWS = 1 << 14


class TreeHasher(ArrayHasher):
    """Base of the methods whose fit sets `forest_`.

    A method has the parameters `n_trees`, `max_depth` and `learning_rate`.
    """

    _arrays: ClassVar[Shapes] = {
        "features": ("b", "trees", "nodes"),
        "thresholds": ("b", "trees", "nodes"),
        "leaves": ("b", "trees", "leaves"),
        "offsets": ("b",),
    }
    _integers: ClassVar[tuple[str, ...]] = ("features",)
    _unbounded: ClassVar[tuple[str, ...]] = ("thresholds",)

    n_trees: int = attribute()
    max_depth: int = attribute()
    learning_rate: float = attribute()

    forest_: Forest = attribute()

    @property
    def n_bits_(self) -> int:
        """Length of the codes of the fitted method."""
        return len(self.forest_.offsets)

    def _tree_settings(self) -> TreeSettings:
        return TreeSettings(self.n_trees, self.max_depth, self.learning_rate)

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        return self.forest_(rows)

    def _block_rows(self, row_shape: tuple[int, ...]) -> int:
        """More rows than other methods take: a call for each tree is to serve many rows."""
        return max(_BLOCK_ROWS, super()._block_rows(row_shape))

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        facts = {name: getattr(self, f"{name}_") for name in self._facts}
        trees = {name: getattr(self.forest_, name) for name in TreeHasher._arrays}
        others = [name for name in self._arrays if name not in trees]
        return {**trees, **{name: getattr(self, f"{name}_") for name in others}}, facts

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        super()._restore(arrays, facts)
        parts = {name: self.__dict__.pop(f"{name}_") for name in TreeHasher._arrays}
        n_nodes, n_leaves = parts["features"].shape[2], parts["leaves"].shape[2]
        if n_leaves != n_nodes + 1 or n_leaves not in [2**depth for depth in range(1, 9)]:
            raise FileFormatError(
                f"the model's trees must have 2 to 256 leaves, a power of two, and a node less, "
                f"got {n_leaves} leaves and {n_nodes} nodes"
            )
        if parts["features"].min() < 0 or parts["features"].max() >= self.n_features_in_:
            raise FileFormatError(
                f"the model's trees must look at features 0 to {self.n_features_in_ - 1}"
            )
        self.forest_ = Forest(**parts)

    def _torch_module(self) -> Any:
        from rankbits.methods.onnx_trees import Trees

        return Trees(self.forest_)
