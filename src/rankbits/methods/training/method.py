"""What training knows of the method it serves: its loss, its metric, its differences in recipes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from rankbits.errors import InputError
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.recipes import Recipes

_LABELS = {
    "classes": "class labels",
    "tags": "a multi-hot matrix",
    "distances": "None (ranks by distance)",
    "judgements": "sparse judgements",
    "levels": "an affinity",
}


@dataclass(frozen=True)
class MethodDefinition:
    """One method, as the stages of a fit see it."""

    name: str  # as in `rankbits.methods.get`, for errors
    class_name: str
    build_loss: Callable[[Supervision], nn.Module]  # a module: forward(logits, batch) -> scalar
    query_values: Callable[..., Tensor]  # (phi, levels, gallery=, own=) -> value of each query
    loss_settings: Callable[[], dict[str, Any]]  # parameters of the loss, once they are checked
    accepted_labels: tuple[str, ...] = ()  # kinds of supervision; all of them if empty
    recipes: Recipes = field(default_factory=dict)
    grades_tags: bool = False

    def require_labels(self, kind: str) -> None:
        """Refuse supervision of a kind that the loss cannot use."""
        if not self.accepted_labels or kind in self.accepted_labels:
            return
        accepted = " or ".join(_LABELS[name] for name in self.accepted_labels)
        got = f"got {_LABELS[kind]}"
        if kind == "distances":
            got = "it requires y to be passed, but the target y is None"
        raise InputError(
            f"y must be {accepted} for {self.class_name}, {got}; talr-ap and talr-ndcg take any"
        )
