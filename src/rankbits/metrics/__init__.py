"""Metrics: tie histograms turned into numbers, one float64 per query.

Each is a pure function, vectorized over queries, and the exact expectation of the ordinary metric
over a uniformly random order inside each tie: no sort, no seed. Bounds are the least and the
greatest value any order could give. NaN marks a query that a metric is not defined for.

A metric that can be evaluated by name is one file with its function and its `Metric`, and a line in
`_MODULES`. `register` adds one from outside.
"""

from importlib import import_module

from rankbits.metrics._average_precision import average_precision, average_precision_bounds
from rankbits.metrics._code_use import CodeUse, code_use
from rankbits.metrics._cumulative_gain import cumulative_gain
from rankbits.metrics._curves import (
    PrecisionRecall,
    precision_curve,
    precision_recall_by_radius,
    precision_recall_by_rank,
    recall_curve,
)
from rankbits.metrics._f1 import f1
from rankbits.metrics._hit_rate import hit_rate
from rankbits.metrics._lgap import crowds, lgap, lgap_from_counts
from rankbits.metrics._metric import Metric, Option
from rankbits.metrics._named import NamedMetric
from rankbits.metrics._names import parse_metric, parse_metrics, register, registered
from rankbits.metrics._ndcg import ndcg, ndcg_bounds
from rankbits.metrics._overlap import overlap
from rankbits.metrics._precision import precision
from rankbits.metrics._recall import recall
from rankbits.metrics._reciprocal_rank import reciprocal_rank
from rankbits.metrics._sklearn_average_precision import sklearn_average_precision
from rankbits.metrics._sums.retrieved import empty_balls

__all__ = [
    "CodeUse",
    "Metric",
    "NamedMetric",
    "Option",
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
    "overlap",
    "parse_metric",
    "parse_metrics",
    "precision",
    "precision_curve",
    "precision_recall_by_radius",
    "precision_recall_by_rank",
    "recall",
    "recall_curve",
    "reciprocal_rank",
    "register",
    "registered",
    "sklearn_average_precision",
]

_MODULES = (  # one metric each, in the order in which errors and the documentation name them
    "_average_precision",
    "_ndcg",
    "_precision",
    "_recall",
    "_f1",
    "_hit_rate",
    "_reciprocal_rank",
    "_overlap",
    "_cumulative_gain",
    "_lgap",
)
for _module in _MODULES:
    register(import_module(f"{__name__}.{_module}").METRIC)
