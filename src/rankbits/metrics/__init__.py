"""Metrics: tie histograms turned into numbers, one float64 a query.

Each is a pure function, vectorised over queries, and the exact expectation of the ordinary metric
over a uniformly random order inside each tie: no sort, no seed. Bounds are the least and the
greatest value any order could give. NaN marks a query that a metric is not defined for.
"""

from rankbits.metrics._average_precision import average_precision
from rankbits.metrics._average_precision_bounds import average_precision_bounds
from rankbits.metrics._code_use import CodeUse, code_use
from rankbits.metrics._curves import (
    PrecisionRecall,
    precision_curve,
    precision_recall_by_radius,
    precision_recall_by_rank,
    recall_curve,
)
from rankbits.metrics._cutoff import cumulative_gain, empty_balls, f1, precision, recall
from rankbits.metrics._first_hit import hit_rate, reciprocal_rank
from rankbits.metrics._lgap import crowds, lgap, lgap_from_counts
from rankbits.metrics._ndcg import ndcg, ndcg_bounds
from rankbits.metrics._usual import sklearn_average_precision

__all__ = [
    "CodeUse",
    "PrecisionRecall",
    "average_precision",
    "average_precision_bounds",
    "code_use",
    "crowds",
    "cumulative_gain",
    "empty_balls",
    "f1",
    "hit_rate",
    "lgap",
    "lgap_from_counts",
    "ndcg",
    "ndcg_bounds",
    "precision",
    "precision_curve",
    "precision_recall_by_radius",
    "precision_recall_by_rank",
    "recall",
    "recall_curve",
    "reciprocal_rank",
    "sklearn_average_precision",
]
