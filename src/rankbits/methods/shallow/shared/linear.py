"""Methods that cut space by hyperplanes: the logits of a row x are (x - mean) planes.

Logits are computed in double precision. The rounding of a product depends on the size of a block
and on the library; in double precision it is so small that a bit depends on neither, here or in an
exported model.
"""

from typing import Any

import numpy as np

from rankbits.methods.parameters.fields import learned
from rankbits.methods.shallow.shared.learned import ArrayHasher


class LinearHasher(ArrayHasher):
    """Base of the methods whose fit sets `mean_` (d,) and `planes_` (d, b)."""

    mean_: np.ndarray = learned("d")
    planes_: np.ndarray = learned("d", "b")

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        logits: np.ndarray = (rows - self.mean_) @ self.planes_
        return logits

    def _torch_module(self) -> Any:
        from rankbits.methods.onnx_modules import Hyperplanes

        return Hyperplanes(self.mean_, self.planes_)
