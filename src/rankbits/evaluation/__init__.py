"""Evaluation: codes and affinities in, numbers with their conventions out.

`evaluate` names its metrics by strings; `compare` asks whether two evaluations differ;
`audit` shows what other tie-breakers would have reported.
"""

from rankbits.evaluation._audit import audit
from rankbits.evaluation._audit_result import Audit
from rankbits.evaluation._compare import Comparison, Difference, compare
from rankbits.evaluation._evaluate import EMPTY, Evaluation, evaluate, evaluate_histogram
from rankbits.evaluation._names import Metric, parse_metric, parse_metrics
from rankbits.evaluation._per_query import load_per_query, save_per_query
from rankbits.evaluation._shards import count_shards

__all__ = [
    "EMPTY",
    "Audit",
    "Comparison",
    "Difference",
    "Evaluation",
    "Metric",
    "audit",
    "compare",
    "count_shards",
    "evaluate",
    "evaluate_histogram",
    "load_per_query",
    "parse_metric",
    "parse_metrics",
    "save_per_query",
]
