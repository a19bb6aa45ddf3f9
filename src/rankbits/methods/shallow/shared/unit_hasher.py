"""Methods that rank by cosines: rows at length 1, which may first be drawn to their groups."""

from typing import Any

import numpy as np

from rankbits.errors import FileFormatError
from rankbits.methods.parameters.fields import attribute
from rankbits.methods.shallow.shared.groups import draw_rows
from rankbits.methods.shallow.shared.learned import ArrayHasher, check_arrays
from rankbits.methods.shallow.shared.smoothing import Smoothing, learn_smoothing
from rankbits.methods.shallow.shared.units import require_directions, scale_to_units

MOST_ROWS = 20_000  # that are learned from
_SHAPES = {"centers": ("g", "d"), "group_temperature": ("1",)}


class UnitHasher(ArrayHasher):
    """A method with the parameter n_groups, that reads rows through `_units`.

    A model without groups has no arrays of them; `smoothing_` is then None.
    """

    n_groups: int = attribute()
    smoothing_: Smoothing | None = attribute()

    def _learn_units(
        self, X: Any, y: Any, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows to learn from, as `_units` gives them, and which of X they are.

        Sets `smoothing_`.
        """
        units = scale_to_units(self._training_rows(X, y))
        require_directions(units)
        drawn = draw_rows(np.arange(len(units)), MOST_ROWS, rng)
        units = units[drawn]
        self.smoothing_ = learn_smoothing(units, self.n_groups, rng) if self.n_groups else None
        return (units if self.smoothing_ is None else self.smoothing_.apply(units)), drawn

    def _units(self, rows: np.ndarray) -> np.ndarray:
        """Rows at length 1, drawn to their groups if there are any."""
        units = scale_to_units(rows)
        return units if self.smoothing_ is None else self.smoothing_.apply(units)

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, facts = super()._state()
        if self.smoothing_ is not None:
            arrays["centers"] = self.smoothing_.centers
            arrays["group_temperature"] = np.array([self.smoothing_.temperature])
        return arrays, facts

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        of_groups = {name: arrays[name] for name in _SHAPES if name in arrays}
        others = {name: array for name, array in arrays.items() if name not in _SHAPES}
        super()._restore(others, facts)
        self.smoothing_ = None
        if of_groups:
            check_arrays(of_groups, _SHAPES, {"d": int(self.n_features_in_)})
            temperature = float(of_groups["group_temperature"][0])
            if temperature <= 0:
                raise FileFormatError(
                    f"the model's group_temperature must be positive, got {temperature}"
                )
            self.smoothing_ = Smoothing(of_groups["centers"], temperature)

    def _unit_module(self) -> Any:
        """A torch module that gives rows as `_units` does."""
        from rankbits.methods.onnx_modules import UnitRows

        return UnitRows(self.smoothing_)
