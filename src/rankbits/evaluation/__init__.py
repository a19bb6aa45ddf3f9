"""Evaluation: codes and affinities in, numbers with their conventions out.

`evaluate` takes the names of metrics; `compare` tests whether two evaluations differ; `audit` shows
what tools that break ties would have reported.
"""

from rankbits.evaluation._audit import audit
from rankbits.evaluation._audit_result import Audit
from rankbits.evaluation._compare import Comparison, Difference, compare
from rankbits.evaluation._evaluate import evaluate, evaluate_histogram
from rankbits.evaluation._per_query import load_per_query, save_per_query
from rankbits.evaluation._result import EMPTY, Evaluation
from rankbits.evaluation._shards import count_shards

__all__ = [
    "EMPTY",
    "Audit",
    "Comparison",
    "Difference",
    "Evaluation",
    "audit",
    "compare",
    "count_shards",
    "evaluate",
    "evaluate_histogram",
    "load_per_query",
    "save_per_query",
]
