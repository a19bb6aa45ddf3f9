"""What the methods that cut space by hyperplanes share: x gets the logits (x - mean) planes.

Logits are computed in double. A product's rounding depends on the block and the library; in double
it is so small that a bit depends on neither, here or in an exported model.
"""

from typing import Any

import numpy as np

from rankbits.errors import FileFormatError
from rankbits.methods._base import BaseHasher


class LinearHasher(BaseHasher):
    """A method whose fit ends in `mean_` (d,) and `planes_` (d, b)."""

    mean_: np.ndarray
    planes_: np.ndarray

    @property
    def n_bits_(self) -> int:
        """Length of the codes of the fitted method."""
        return int(self.planes_.shape[1])

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        logits: np.ndarray = (rows - self.mean_) @ self.planes_
        return logits

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"mean": self.mean_, "planes": self.planes_}, {}

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        shapes = {"mean": ("d",), "planes": ("d", "b")}
        require_arrays(arrays, facts, shapes, {"d": self.n_features_in_})
        self.mean_, self.planes_ = arrays["mean"], arrays["planes"]

    def _torch_module(self) -> Any:
        from rankbits.methods._onnx import Hyperplanes

        return Hyperplanes(self.mean_, self.planes_)


def require_arrays(
    arrays: dict[str, np.ndarray],
    facts: dict[str, Any],
    shapes: dict[str, tuple[str, ...]],
    sizes: dict[str, int],
) -> None:
    """Refuse arrays that are not just these, finite doubles of these shapes, or any fact.

    A letter in a shape stands for one size everywhere; `sizes` has those known beforehand.

    >>> require_arrays({"mean": np.zeros(3)}, {}, {"mean": ("d",)}, {"d": 3})
    """
    if set(arrays) != set(shapes) or facts:
        raise FileFormatError(
            f"the model must hold the arrays {', '.join(shapes)} and no facts, "
            f"got {', '.join(sorted([*arrays, *facts])) or 'none'}"
        )
    for name, letters in shapes.items():
        found = arrays[name]
        fits = found.ndim == len(letters) and all(
            sizes.setdefault(letter, size) == size
            for letter, size in zip(letters, found.shape, strict=True)
        )
        if not fits or found.dtype != np.float64 or not np.isfinite(found).all():
            wanted = ", ".join(str(sizes.get(letter, letter)) for letter in letters)
            raise FileFormatError(
                f"the model's {name} must be finite float64 of shape ({wanted}), "
                f"got {found.dtype} of shape {found.shape}"
            )
