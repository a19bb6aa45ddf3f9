"""`rankbits evaluate`: codes and labels in, metrics out."""

from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from typing import Annotated, Any

import typer

from rankbits.cli import _inputs
from rankbits.cli._inputs import input_errors_exit_1, require_writable
from rankbits.cli._output import number, print_json, print_table, progress_bar, warn
from rankbits.cli._runs import Run, RunFiles, load_run
from rankbits.evaluation import (
    Evaluation,
    count_shards,
    evaluate_histogram,
    save_per_query,
)
from rankbits.evaluation import evaluate as evaluate_codes
from rankbits.histogram import TieHistogram
from rankbits.metrics import parse_metrics

HistogramOption = Annotated[
    list[str] | None,
    typer.Option(
        "--histogram", help="Instead of codes: a saved histogram; repeat for more shards."
    ),
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", help="Such as AP, AP(min)@1000, nDCG@100, RR@10, P@r2; repeat for more."
    ),
]
PerQueryOption = Annotated[
    str | None, typer.Option("--per-query", help="Write each query's values to this .parquet.")
]
SaveHistogramOption = Annotated[
    str | None, typer.Option("--save-histogram", help="Write the tie histogram to this .npz.")
]


def evaluate(
    queries: Annotated[str | None, _inputs.QUERIES] = None,
    database: Annotated[list[str] | None, _inputs.DATABASE] = None,
    bits: _inputs.BitsOption = None,
    codes: _inputs.FormOption = _inputs.CodeForm.auto,
    query_labels: _inputs.QueryLabelsOption = None,
    database_labels: _inputs.DatabaseLabelsOption = None,
    judgements: _inputs.JudgementsOption = None,
    query_ids: _inputs.QueryIdsOption = None,
    database_ids: _inputs.DatabaseIdsOption = None,
    graded: _inputs.GradedOption = False,
    histogram: HistogramOption = None,
    metric: MetricOption = None,
    empty: _inputs.EmptyOption = _inputs.EmptyPolicy.skip,
    exclude_self: _inputs.ExcludeSelfOption = False,
    threads: _inputs.ThreadsOption = None,
    output: _inputs.FormatOption = _inputs.OutputFormat.json,
    per_query: PerQueryOption = None,
    save_histogram: SaveHistogramOption = None,
) -> None:
    """Score codes by how they rank, exactly under ties; print the metrics as one JSON object."""
    request = EvaluationRequest(metric or ["AP"], empty, exclude_self, threads)
    files = RunFiles(
        queries, database, query_labels, database_labels, judgements, query_ids, database_ids,
        bits, codes.value, graded,
    )  # fmt: skip
    with input_errors_exit_1():
        parse_metrics(request.metrics)
        for path in (per_query, save_histogram):
            require_writable(path)
        if histogram:
            result, details = _evaluate_saved(histogram, files, request)
        else:
            result, details = _evaluate_files(files, request)
        if per_query is not None:
            save_per_query(result, per_query)
        if save_histogram is not None:
            result.histogram.save(save_histogram)
    _print(result, details, output)


@dataclass(frozen=True)
class EvaluationRequest:
    """What to compute from the data."""

    metrics: list[str]
    empty: str
    exclude_self: bool
    n_threads: int | None


def _evaluate_files(
    files: RunFiles, request: EvaluationRequest
) -> tuple[Evaluation, dict[str, Any]]:
    """The evaluation of a run, and what else its result tells: shards, counts of judgements."""
    if files.queries is None or not files.database:
        raise typer.BadParameter("give --queries and --database, or --histogram")
    run = load_run(files)
    details: dict[str, Any] = {"shards": len(run.shards)}
    if run.qrels_counts is not None:
        counts = asdict(run.qrels_counts).items()
        details["judgements"] = {name.removeprefix("n_"): count for name, count in counts}
    return _evaluate_run(run, request), details


def _evaluate_run(run: Run, request: EvaluationRequest) -> Evaluation:
    """Add the counts of the shards; join the shards only for a metric that needs all codes."""
    metrics = parse_metrics(request.metrics, run.queries.n_bits)
    with progress_bar("counting ties") as progress:
        if any(metric.needs_codes for metric in metrics):
            database, affinity = run.join_shards()
            return evaluate_codes(
                run.queries,
                database,
                affinity,
                request.metrics,
                request.empty,
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


def _evaluate_saved(
    paths: list[str], files: RunFiles, request: EvaluationRequest
) -> tuple[Evaluation, dict[str, Any]]:
    """The evaluation of saved histograms, which are of shards of one database."""
    if not files.is_empty or request.n_threads is not None:
        raise typer.BadParameter(
            "give --histogram, or codes and labels and how to read them, not both"
        )
    if request.exclude_self:
        raise typer.BadParameter("--exclude-self must be given where the histogram is counted")
    hist = reduce(add, [TieHistogram.load(path) for path in paths])
    return evaluate_histogram(hist, request.metrics, request.empty), {"shards": len(paths)}


def _print(result: Evaluation, details: dict[str, Any], output: str) -> None:
    summary = {**result.to_dict(), **details}
    if result.n_skipped:
        warn(
            f"{result.n_skipped} of {summary['queries']} queries have nothing relevant and are "
            "left out of the means that need it; --empty zero counts them as 0"
        )
    if output == "json":
        print_json(summary)
        return
    n_shards = details["shards"]
    title = (
        f"{summary['queries']} queries, {summary['database']} items, {summary['bits']} bits, "
        f"{n_shards} shard{'s' if n_shards > 1 else ''}, empty queries: {summary['empty']}"
    )
    rows = [
        (
            name,
            number(row["mean"], 6),
            str(row["queries"]),
            str(row["skipped"]),
            _shown_conventions(row),
        )
        for name, row in summary["metrics"].items()
    ]
    header = "metric", "mean", "queries", "skipped", "conventions"
    print_table(title, header, rows, n_numbers=3)


def _shown_conventions(row: dict[str, Any]) -> str:
    """The conventions of a metric in one cell, without those that the table's title says."""
    hidden = ("cutoff", "empty_ball", "empty_query")
    words = [text for key, text in row["conventions"].items() if key not in hidden]
    if "empty_balls" in row:
        words.append(f"{row['empty_balls']:.1%} empty balls score 0")
    return "; ".join(words)
