"""What `rankbits evaluate --cluster` computes."""

from typing import Any

import typer

from rankbits.affinity import QrelsJudgements
from rankbits.cli._cluster import rate_progress
from rankbits.cli._evaluation_runs import EvaluationRequest, Outcome
from rankbits.cli._judgements import CodeFiles, id_files_of, load_judged_pairs
from rankbits.cli._runs import RunFiles
from rankbits.codes import BinaryCodes
from rankbits.datasets import load_codes
from rankbits.errors import InputError
from rankbits.evaluation import evaluate_histogram
from rankbits.metrics import parse_metrics


def evaluate_on_cluster(files: RunFiles, request: EvaluationRequest, cluster: str) -> Outcome:
    """Codes against codes in shards, counted by tasks on a cluster."""
    assert files.queries is not None and files.database  # noqa: S101, PT018
    queries = load_codes(files.queries, files.n_bits, files.form)
    for metric in parse_metrics(request.metrics, queries.n_bits):
        if metric.needs_codes or metric.metric.reads_reference:
            raise InputError(
                f"metric {metric.name!r} needs all codes in one place; leave out --cluster, or "
                "this metric"
            )
    relevance, counts = _relevance(files, queries)
    from rankbits import distributed

    with rate_progress("counting ties", "pairs") as progress:
        hist = distributed.count_ties(
            queries,
            list(files.database),
            request.exclude_self,
            **relevance,
            n_bits=files.n_bits,
            form=files.form,
            cluster=cluster,
            n_threads=request.n_threads or 1,
            progress=progress,
        )
    return evaluate_histogram(hist, request.metrics, request.empty), counts


def _relevance(files: RunFiles, queries: BinaryCodes) -> tuple[dict[str, Any], Any]:
    """Labels or judgements as `distributed.count_ties` takes them."""
    given = files.relevance
    assert files.queries is not None and files.database  # noqa: S101, PT018
    has_labels = given.query_labels is not None and bool(given.database_labels)
    if has_labels == (given.judgements is not None):
        raise typer.BadParameter(
            "give both --query-labels and --database-labels, or --judgements instead of them"
        )
    if given.judgements is None:
        labels = {"query_labels": given.query_labels, "database_labels": given.database_labels}
        return {**labels, "graded": given.graded}, None
    ids = id_files_of(given.judgements, given.query_ids, given.database_ids, len(files.database))
    sizes = [len(load_codes(path, files.n_bits, files.form)) for path in files.database]
    code_files = CodeFiles(files.queries, len(queries), files.database, sizes)
    judged = load_judged_pairs(given.judgements, ids, code_files)
    counts = judged.counts if isinstance(judged, QrelsJudgements) else None
    return {"judgements": judged}, counts
