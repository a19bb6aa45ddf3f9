"""Ranking objectives: the metrics' own formulas, read from a soft tie histogram (needs torch)."""

from rankbits import _check

_check.extra("torch", "rankbits.objectives", "train")

from rankbits.objectives._relaxed import (  # noqa: E402
    RELAXATIONS,
    mean_over_queries,
    relaxed_ap,
    relaxed_ndcg,
)
from rankbits.objectives._soft import soft_ties  # noqa: E402

__all__ = ["RELAXATIONS", "mean_over_queries", "relaxed_ap", "relaxed_ndcg", "soft_ties"]
