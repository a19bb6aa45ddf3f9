"""Evaluation: codes and affinities in, numbers with their conventions out.

`evaluate` names its metrics by strings; `compare` asks whether two evaluations differ;
`audit` shows what other tie-breakers would have reported.
"""

from rankbits.evaluate._audit import audit
from rankbits.evaluate._audit_result import Audit
from rankbits.evaluate._compare import Comparison, Difference, compare
from rankbits.evaluate._evaluate import EMPTY, Evaluation, evaluate, evaluate_histogram
from rankbits.evaluate._names import Metric, parse_metric, parse_metrics
from rankbits.evaluate._per_query import load_per_query, save_per_query
from rankbits.evaluate._shards import count_shards

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
