"""Bits that are signs of cosines: waves along directions instead of the two sides of a plane.

The logits of a row x are cos((x - mean) planes + phases) + thresholds. A wave cuts its direction
into strips of equal width, so one direction can carry several bits.
"""

from typing import Any

import numpy as np

from rankbits.methods.parameters.fields import learned
from rankbits.methods.shallow.shared.linear import LinearHasher


class WaveHasher(LinearHasher):
    """Base of the methods whose fit sets `mean_`, `planes_`, `phases_` and `thresholds_` (b,)."""

    phases_: np.ndarray = learned("b")
    thresholds_: np.ndarray = learned("b")

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        logits: np.ndarray = np.cos(self._angles(rows)) + self.thresholds_
        return logits

    def _angles(self, rows: np.ndarray) -> np.ndarray:
        """Angles whose cosines are taken, shape (rows, b)."""
        angles: np.ndarray = super()._logits(rows) + self.phases_
        return angles

    def _torch_module(self) -> Any:
        from rankbits.methods.onnx_modules import Waves

        return Waves(super()._torch_module(), self.phases_, self.thresholds_)
