"""Training that diverged is an error: it says at which step, what the loss was, and what to do.

A loss, an output or a weight that is not finite ends a run at its step. Weights can also grow until
every row gets one code while all numbers stay finite; that shows at the end.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.errors import FitError
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.encoders import encode_rows
from rankbits.methods.training.inputs import Inputs

_SAMPLE = 256
_BLOCK = 4096
_MANY_BITS = 8
_LARGEST_WEIGHT = 1e10  # inputs are scaled to about 1, and so are weights that were learned


@dataclass
class DivergenceGuard:
    """The first loss of a run, and the checks of each step."""

    name: str  # whose loss it is
    learning_rate: float
    first_step: int = 0
    first_loss: float = math.nan

    def require_finite_outputs(self, step: int, outputs: Tensor) -> None:
        """Refuse outputs that no loss could use."""
        if not bool(torch.isfinite(outputs).all()):
            self._fail(step, f"the loss of {self.name} gets outputs that are not finite")

    def require_finite_loss(self, step: int, loss: float) -> None:
        """Refuse a loss that is not finite; remember the first one."""
        if not math.isfinite(loss):
            self._fail(step, f"the loss of {self.name} is {loss}")
        if self.first_step == 0:
            self.first_step, self.first_loss = step, loss

    def require_sound_weights(self, step: int, module: nn.Module) -> None:
        """Refuse weights that are not finite, or so large that steps no longer change them."""
        trained = [weight.detach() for weight in module.parameters() if weight.requires_grad]
        for weight in trained:
            if not bool((weight.abs() < _LARGEST_WEIGHT).all()):
                largest = float(weight.abs().max())
                self._fail(step, f"a weight has become {largest:.3g} under the loss of {self.name}")

    def _fail(self, step: int, what: str) -> None:
        if self.first_step == 0:
            raise FitError(
                f"training diverged at step {step}: {what} before anything was learned; check the "
                "scale of X and the parameters of the loss"
            )
        raise FitError(
            f"training diverged at step {step}: {what}; the loss was {self.first_loss:.4g} at step "
            f"{self.first_step}; {_advice(self.learning_rate)}"
        )


def require_several_codes(
    guard: DivergenceGuard,
    module: nn.Module,
    inputs: Inputs,
    supervision: Supervision,
    history: list[dict[str, float]],
) -> None:
    """Refuse an encoder that gives one code to training rows that differ in value and relevance."""
    sample = np.unique(np.linspace(0, len(inputs) - 1, _SAMPLE).astype(np.int64))
    rows = inputs[torch.from_numpy(sample)]
    logits = encode_rows(module, rows)
    advice = _advice(guard.learning_rate)
    if not bool(torch.isfinite(logits).all()):
        raise FitError(f"training of {guard.name} diverged: outputs are not finite; {advice}")
    first = logits[:1] > 0
    if first.numel() < _MANY_BITS:
        return  # a bit or two may well be the same for all of a few rows
    if bool(((logits > 0) != first).any()) or not _should_differ(rows, sample, supervision):
        return
    for start in range(0, len(inputs), _BLOCK):
        logits = encode_rows(module, inputs[start : start + _BLOCK])
        if bool(((logits > 0) != first).any()):
            return
    raise FitError(
        f"training of {guard.name} diverged: all {len(inputs)} training rows have one code after "
        f"{len(history)} epochs, the loss went from {history[0]['loss']:.4g} to "
        f"{history[-1]['loss']:.4g}; {advice}"
    )


def _should_differ(rows: Tensor, sample: np.ndarray, supervision: Supervision) -> bool:
    """Whether rows differ, and some of them are more relevant to each other than others are."""
    return bool((rows != rows[:1]).any()) and supervision.has_contrast(sample)


def _advice(learning_rate: float) -> str:
    return f"lower learning_rate (now {learning_rate:g})"
