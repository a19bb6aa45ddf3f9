"""rankbits: binary codes that rank.

`benchmark`, `index`, `methods` and `objectives` are imported at first use; some bring scikit-learn
and torch along.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankbits import affinity, metrics
from rankbits.codes import BinaryCodes
from rankbits.evaluate import Comparison, Evaluation, compare, evaluate, evaluate_histogram
from rankbits.histogram import TieHistogram, count_ties

if TYPE_CHECKING:
    from rankbits import methods
    from rankbits import objectives as objectives
    from rankbits.methods import load

__all__ = [
    "BinaryCodes",
    "Comparison",
    "Evaluation",
    "TieHistogram",
    "affinity",
    "compare",
    "count_ties",
    "evaluate",
    "evaluate_histogram",
    "load",
    "methods",
    "metrics",
]  # without objectives: a star import must not need torch
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what is wanted only now."""
    if name in ("benchmark", "datasets", "index", "methods", "objectives"):
        return import_module(f"rankbits.{name}")
    if name == "load":
        return import_module("rankbits.methods").load
    raise AttributeError(f"module 'rankbits' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is there already, and what comes at first use."""
    return sorted({*globals(), *__all__, "benchmark", "datasets", "index", "objectives"})
