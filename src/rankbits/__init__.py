"""rankbits: binary codes that rank.

`adapters`, `benchmark`, `client`, `compress`, `datasets`, `distributed`, `index`, `methods`,
`objectives`, `report` and `service` are imported at first use, because some of them bring
scikit-learn, torch, matplotlib, Ray or FastAPI along.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankbits import affinity, evaluation, metrics
from rankbits.codes import BinaryCodes
from rankbits.evaluation import (
    Comparison,
    Evaluation,
    compare,
    evaluate,
    evaluate_histogram,
    evaluate_rankings,
    evaluate_vectors,
)
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
    "evaluate_rankings",
    "evaluate_vectors",
    "evaluation",
    "load",
    "methods",
    "metrics",
]  # without objectives: a star import must not need torch
__version__ = "0.1.0"
_LAZY = (
    "adapters",
    "benchmark",
    "client",
    "compress",
    "datasets",
    "distributed",
    "index",
    "methods",
    "objectives",
    "report",
    "service",
)


def __getattr__(name: str) -> Any:
    """Import a package at its first use."""
    if name in _LAZY:
        return import_module(f"rankbits.{name}")
    if name == "load":
        return import_module("rankbits.methods").load
    raise AttributeError(f"module 'rankbits' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Every public name, imported already or not."""
    return sorted({*globals(), *__all__, *_LAZY})
