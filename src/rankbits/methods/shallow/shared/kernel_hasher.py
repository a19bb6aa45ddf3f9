"""Methods that cut the space of RBF anchors by hyperplanes: the logits are (z(x) - mean) planes."""

from typing import Any, ClassVar

import numpy as np

from rankbits.errors import FileFormatError
from rankbits.methods.parameters.fields import attribute
from rankbits.methods.shallow.shared.kernels import RbfAnchors, draw_anchors
from rankbits.methods.shallow.shared.learned import Shapes, check_arrays
from rankbits.methods.shallow.shared.linear import LinearHasher
from rankbits.methods.shallow.shared.parameters import CHECK_GAMMA


class KernelHasher(LinearHasher):
    """Base of the methods whose hyperplanes may lie in the space of RBF anchors.

    A method has the parameters `n_anchors` and `gamma`; with a parameter `kernel` of "rbf" or None
    its users choose between the anchors and the rows themselves. Its fit calls `_draw_anchors`, and
    learns `mean_` and `planes_` from the coordinates that this returns.
    """

    _is_orthonormal: ClassVar[bool] = True  # whether z(x), or else k(x): see `kernels`
    n_anchors: int = attribute()
    gamma: float | None = attribute()

    anchors_: RbfAnchors | None = attribute()

    @property
    def _has_kernel(self) -> bool:
        return getattr(self, "kernel", "rbf") is not None

    def _draw_anchors(self, rows: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Set `anchors_`, None without a kernel, and return the coordinates of the rows."""
        self.anchors_ = None
        if self._has_kernel:
            anchors = draw_anchors(rows, self.n_anchors, self.gamma, rng)
            self.anchors_ = anchors.orthonormalize() if self._is_orthonormal else anchors
        return self._coordinates(rows)

    def _coordinates(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.anchors_ is None else self.anchors_(rows)

    def _n_columns(self) -> int:
        return super()._n_columns() if self.anchors_ is None else self.anchors_.n_columns

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        return super()._logits(self._coordinates(rows))

    def _block_rows(self, row_shape: tuple[int, ...]) -> int:
        n_anchors = 1 if self.anchors_ is None else len(self.anchors_.rows)
        return min(super()._block_rows(row_shape), super()._block_rows((n_anchors,)))

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, facts = super()._state()
        if self.anchors_ is not None:
            arrays |= {"anchors": self.anchors_.rows, "gamma": np.array([self.anchors_.gamma])}
            if self.anchors_.basis is not None:
                arrays["basis"] = self.anchors_.basis
        return arrays, facts

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        arrays, facts = dict(arrays), dict(facts)
        if "gamma" in facts:  # where lwh had it before
            arrays["gamma"] = np.array([facts.pop("gamma")])
        self.anchors_ = self._take_anchors(arrays) if self._has_kernel else None
        super()._restore(arrays, facts)

    def _take_anchors(self, arrays: dict[str, np.ndarray]) -> RbfAnchors:
        """Remove the arrays of the anchors and build the anchors from them."""
        shapes: Shapes = {"anchors": ("m", "d"), "gamma": ("one",)}
        if self._is_orthonormal:
            shapes["basis"] = ("m", "r")
        missing = [name for name in shapes if name not in arrays]
        if missing:
            raise FileFormatError(
                f"the model must hold the arrays {', '.join(shapes)} of its kernel; "
                f"{missing[0]} is missing"
            )
        parts = {name: arrays.pop(name) for name in shapes}
        check_arrays(parts, shapes, {"d": int(self.n_features_in_), "one": 1})
        gamma = CHECK_GAMMA("gamma", float(parts["gamma"][0]))
        return RbfAnchors(parts["anchors"], gamma, parts.get("basis"))

    def _torch_module(self) -> Any:
        planes = super()._torch_module()
        if self.anchors_ is None:
            return planes
        from torch import nn

        from rankbits.methods.onnx_modules import AnchorFeatures

        return nn.Sequential(AnchorFeatures(self.anchors_), planes)
