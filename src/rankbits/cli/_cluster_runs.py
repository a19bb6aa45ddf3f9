"""What `rankbits evaluate --cluster` computes."""

from typing import Any

from rankbits.cli._cluster import rate_progress
from rankbits.cli._evaluation_runs import EvaluationRequest, Outcome
from rankbits.cli._judgements import CodeFiles, counts_of, load_judged_pairs
from rankbits.cli._options import CodeOptions, GradedRelevance
from rankbits.cli._runs import label_paths
from rankbits.codes import BinaryCodes
from rankbits.datasets import load_codes
from rankbits.errors import InputError
from rankbits.evaluation import evaluate_histogram
from rankbits.metrics import parse_metrics


def evaluate_on_cluster(
    files: CodeOptions, relevance: GradedRelevance, request: EvaluationRequest, cluster: str
) -> Outcome:
    """Codes against codes in shards, counted by tasks on a cluster."""
    assert files.queries is not None and files.database  # noqa: S101, PT018
    queries = load_codes(files.queries, files.bits, files.codes)
    for metric in parse_metrics(request.metrics, queries.n_bits):
        if metric.needs_codes or metric.metric.reads_reference:
            raise InputError(
                f"metric {metric.name!r} needs all codes in one place; leave out --cluster, or "
                "this metric"
            )
    sources, counts = _sources(files, relevance, queries)
    from rankbits import distributed

    with rate_progress("counting ties", "pairs") as progress:
        hist = distributed.count_ties(
            queries,
            list(files.database),
            request.exclude_self,
            **sources,
            n_bits=files.bits,
            form=files.codes.value,
            cluster=cluster,
            n_threads=request.n_threads or 1,
            progress=progress,
        )
    return evaluate_histogram(hist, request.metrics, request.empty), counts


def _sources(
    files: CodeOptions, relevance: GradedRelevance, queries: BinaryCodes
) -> tuple[dict[str, Any], Any]:
    """Labels or judgements as `distributed.count_ties` takes them."""
    assert files.queries is not None and files.database  # noqa: S101, PT018
    paths = label_paths(relevance, files.database)
    if paths is not None:
        labels = dict(zip(("query_labels", "database_labels"), paths, strict=True))
        return {**labels, "graded": relevance.graded}, None
    sizes = [len(load_codes(path, files.bits, files.codes)) for path in files.database]
    code_files = CodeFiles(files.queries, len(queries), files.database, sizes)
    judged = load_judged_pairs(relevance, code_files)
    return {"judgements": judged}, counts_of(judged)
