"""What `rankbits evaluate` computes from each kind of run."""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import cast

import typer

from rankbits.affinity import QrelsCounts
from rankbits.cli._options import CodeOptions, GradedRelevance
from rankbits.cli._output import progress_bar
from rankbits.cli._ranked_runs import (
    load_ranked_run,
    load_reference,
    load_vectors_run,
    load_weights_run,
    warn_of_queries,
)
from rankbits.cli._runs import Run, load_run
from rankbits.codes import BinaryCodes
from rankbits.evaluation import (
    Evaluation,
    count_shards,
    evaluate_histogram,
    evaluate_rankings,
)
from rankbits.evaluation import evaluate as evaluate_codes
from rankbits.evaluation import evaluate_vectors as score_vectors
from rankbits.histogram import TieHistogram
from rankbits.metrics import parse_metrics


@dataclass(frozen=True)
class EvaluationRequest:
    """What to compute from the data."""

    metrics: list[str]
    empty: str
    exclude_self: bool
    n_threads: int | None
    reference: str | None  # file of a reference ranking


Outcome = tuple[Evaluation, QrelsCounts | None]  # and what became of judgements by id


def evaluate_run(
    files: CodeOptions, relevance: GradedRelevance, request: EvaluationRequest
) -> Outcome:
    """Codes against codes."""
    run = load_run(files, relevance)
    return _evaluate_shards(run, request), run.qrels_counts


def _evaluate_shards(run: Run, request: EvaluationRequest) -> Evaluation:
    """Add the counts of the shards; join the shards only for a metric that needs all codes."""
    metrics = parse_metrics(request.metrics, run.queries.n_bits)
    with progress_bar("counting ties") as progress:
        if any(metric.needs_codes or metric.metric.reads_reference for metric in metrics):
            database, affinity = run.join_shards()
            return evaluate_codes(
                run.queries,
                database,
                affinity,
                request.metrics,
                request.empty,
                reference=load_reference(request.reference),
                exclude_self=request.exclude_self,
                n_threads=request.n_threads,
                progress=progress,
            )
        hist = count_shards(
            run.queries,
            run.shards,
            request.exclude_self,
            n_threads=request.n_threads,
            progress=progress,
        )
    return evaluate_histogram(hist, request.metrics, request.empty)


def evaluate_weights(
    files: CodeOptions, relevance: GradedRelevance, request: EvaluationRequest
) -> Outcome:
    """Real-valued queries against codes."""
    run = load_weights_run(files, relevance)
    with progress_bar("counting ties") as progress:
        result = evaluate_codes(
            None,
            cast(BinaryCodes, run.database),
            run.affinity,
            request.metrics,
            request.empty,
            query_weights=run.queries,
            reference=load_reference(request.reference),
            exclude_self=request.exclude_self,
            n_threads=request.n_threads,
            progress=progress,
        )
    return result, run.qrels_counts


def evaluate_vectors(
    files: CodeOptions, relevance: GradedRelevance, request: EvaluationRequest, similarity: str
) -> Outcome:
    """Vectors against vectors."""
    run = load_vectors_run(files, relevance)
    with progress_bar("counting ties") as progress:
        result = score_vectors(
            run.queries,
            run.database,
            run.affinity,
            request.metrics,
            similarity,
            request.empty,
            reference=load_reference(request.reference),
            exclude_self=request.exclude_self,
            n_threads=request.n_threads,
            progress=progress,
        )
    return result, run.qrels_counts


def evaluate_lists(
    rankings: str, relevance: GradedRelevance, request: EvaluationRequest
) -> Outcome:
    """Lists of results."""
    run = load_ranked_run(rankings, request.reference, relevance)
    result = evaluate_rankings(
        run.results.ids,
        run.affinity,
        request.metrics,
        run.results.scores,
        request.empty,
        reference=run.reference,
        exclude_self=request.exclude_self,
        n_items=run.n_items,
    )
    warn_of_queries(rankings, run.results)
    return result, run.qrels_counts


def evaluate_saved(paths: list[str], request: EvaluationRequest) -> Evaluation:
    """Saved histograms of the shards of a database."""
    if request.exclude_self:
        raise typer.BadParameter("--exclude-self must be given where the histogram is counted")
    hist = reduce(add, [TieHistogram.load(path) for path in paths])
    return evaluate_histogram(hist, request.metrics, request.empty)
