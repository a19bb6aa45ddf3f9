"""rankbits: binary codes that rank.

Every name here, and every room of the house, is imported at its first use: so reading codes does
not load what evaluates them, and nothing loads scikit-learn, torch, Ray or FastAPI before it is
needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankbits import affinity, evaluation, methods, metrics
    from rankbits import objectives as objectives
    from rankbits._open import open as open  # noqa: A004 - as rankbits.open
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
]  # without objectives and open: a star import must not need torch, nor hide Python's open
__version__ = "0.1.0"
_ROOM_OF = {
    "BinaryCodes": "codes",
    "Comparison": "evaluation",
    "Evaluation": "evaluation",
    "TieHistogram": "histogram",
    "compare": "evaluation",
    "count_ties": "histogram",
    "evaluate": "evaluation",
    "evaluate_histogram": "evaluation",
    "evaluate_rankings": "evaluation",
    "evaluate_vectors": "evaluation",
    "load": "methods",
    "open": "_open",
}
_ROOMS = (
    "adapters",
    "affinity",
    "benchmark",
    "client",
    "codes",
    "compress",
    "datasets",
    "distributed",
    "errors",
    "evaluation",
    "histogram",
    "index",
    "methods",
    "metrics",
    "objectives",
    "papers",
    "report",
    "service",
)


def __getattr__(name: str) -> Any:
    """Import a room, or the room of a name, at its first use."""
    if name in _ROOMS:
        return import_module(f"rankbits.{name}")
    if name in _ROOM_OF:
        return getattr(import_module(f"rankbits.{_ROOM_OF[name]}"), name)
    raise AttributeError(f"module 'rankbits' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Every public name, imported already or not."""
    return sorted({*globals(), *__all__, *_ROOM_OF, *_ROOMS})
