"""rankbits: binary codes that rank."""

from rankbits import affinity, metrics
from rankbits.codes import BinaryCodes
from rankbits.evaluate import Comparison, Evaluation, compare, evaluate, evaluate_histogram
from rankbits.histogram import TieHistogram, count_ties

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
    "metrics",
]
__version__ = "0.1.0"
