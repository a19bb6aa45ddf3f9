"""Evaluation: codes and affinities in, numbers with their conventions out.

`evaluate` takes the names of metrics; `compare` tests whether two evaluations differ; `audit` shows
what tools that break ties would have reported.
"""

from rankbits.evaluation._audit import audit
from rankbits.evaluation._audit_result import Audit, AuditedMetric, AuditRow, CutoffRow, TieSizes
from rankbits.evaluation._compare import Comparison, Difference, compare
from rankbits.evaluation._evaluate import evaluate, evaluate_histogram
from rankbits.evaluation._nearest import nearest_vectors
from rankbits.evaluation._per_query import load_per_query, save_per_query
from rankbits.evaluation._rankings import evaluate_rankings
from rankbits.evaluation._result import EMPTY, Evaluation
from rankbits.evaluation._runs import (
    Results,
    RunLine,
    is_run_file,
    load_results,
    read_run,
    run_lines,
)
from rankbits.evaluation._shards import count_shards
from rankbits.evaluation._vectors import evaluate_vectors

__all__ = [
    "EMPTY",
    "Audit",
    "AuditRow",
    "AuditedMetric",
    "Comparison",
    "CutoffRow",
    "Difference",
    "Evaluation",
    "Results",
    "RunLine",
    "TieSizes",
    "audit",
    "compare",
    "count_shards",
    "evaluate",
    "evaluate_histogram",
    "evaluate_rankings",
    "evaluate_vectors",
    "is_run_file",
    "load_per_query",
    "load_results",
    "nearest_vectors",
    "read_run",
    "run_lines",
    "save_per_query",
]
