"""`rankbits evaluate`: codes and labels in, metrics out."""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Annotated, Any

import typer

from rankbits.cli import _inputs
from rankbits.cli._inputs import Run, input_errors_exit_1, load_run, require_writable
from rankbits.cli._output import number, print_json, print_table, progress_bar, warn
from rankbits.evaluation import (
    Evaluation,
    count_shards,
    evaluate_histogram,
    save_per_query,
)
from rankbits.evaluation import evaluate as evaluate_codes
from rankbits.histogram import TieHistogram
from rankbits.metrics import parse_metrics


def evaluate(
    queries: Annotated[str | None, _inputs.QUERIES] = None,
    database: Annotated[list[str] | None, _inputs.DATABASE] = None,
    bits: _inputs.BitsOption = None,
    codes: _inputs.FormOption = _inputs.CodeForm.auto,
    query_labels: _inputs.QueryLabelsOption = None,
    database_labels: _inputs.DatabaseLabelsOption = None,
    judgements: _inputs.JudgementsOption = None,
    graded: _inputs.GradedOption = False,
    histogram: Annotated[
        list[str] | None,
        typer.Option("--histogram", help="Instead of codes: saved histograms; shards add."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="AP, AP(min)@1000, nDCG@100, P@r2, ...; again for more."),
    ] = None,
    empty: _inputs.EmptyOption = _inputs.EmptyPolicy.skip,
    exclude_self: _inputs.ExcludeSelfOption = False,
    threads: _inputs.ThreadsOption = None,
    output: _inputs.FormatOption = _inputs.OutputFormat.json,
    per_query: Annotated[
        str | None, typer.Option("--per-query", help="Write each query's values to this .parquet.")
    ] = None,
    save_histogram: Annotated[
        str | None, typer.Option("--save-histogram", help="Write the tie histogram to this .npz.")
    ] = None,
) -> None:
    """Score codes by how they rank, exactly under ties; print the metrics as one JSON object."""
    asked = Asked(metric or ["AP"], empty, exclude_self, threads)
    with input_errors_exit_1():
        parse_metrics(asked.metrics)
        for path in (per_query, save_histogram):
            require_writable(path)
        if histogram:
            _refuse_codes(
                queries, database, query_labels, database_labels, judgements, bits, graded, threads
            )
            result = _evaluate_saved(histogram, asked)
        else:
            if queries is None or not database:
                raise typer.BadParameter("give --queries and --database, or --histogram")
            run = load_run(
                queries,
                database,
                query_labels=query_labels,
                database_labels=database_labels,
                judgements=judgements,
                n_bits=bits,
                form=codes,
                graded=graded,
            )
            result = _evaluate_run(run, asked)
        if per_query is not None:
            save_per_query(result, per_query)
        if save_histogram is not None:
            result.histogram.save(save_histogram)
    _print(result, len(histogram or database or ()), output)


@dataclass(frozen=True)
class Asked:
    """What to compute, apart from the data."""

    metrics: list[str]
    empty: str
    exclude_self: bool
    n_threads: int | None


def _evaluate_run(run: Run, asked: Asked) -> Evaluation:
    """Count shard by shard and add; join the shards only for a metric that needs all codes."""
    metrics = parse_metrics(asked.metrics, run.queries.n_bits)
    with progress_bar("counting ties") as progress:
        if any(metric.needs_codes for metric in metrics):
            database, affinity = run.whole()
            return evaluate_codes(
                run.queries,
                database,
                affinity,
                asked.metrics,
                asked.empty,
                exclude_self=asked.exclude_self,
                n_threads=asked.n_threads,
                progress=progress,
            )
        hist = count_shards(
            run.queries,
            run.shards,
            asked.exclude_self,
            n_threads=asked.n_threads,
            progress=progress,
        )
    return evaluate_histogram(hist, asked.metrics, asked.empty)


def _evaluate_saved(paths: list[str], asked: Asked) -> Evaluation:
    if asked.exclude_self:
        raise typer.BadParameter("--exclude-self must be given where the histogram is counted")
    hist = reduce(add, [TieHistogram.load(path) for path in paths])
    return evaluate_histogram(hist, asked.metrics, asked.empty)


def _refuse_codes(*files: Any) -> None:
    if any(files):
        raise typer.BadParameter(
            "give --histogram, or codes and labels and how to read them, not both"
        )


def _print(result: Evaluation, n_shards: int, output: str) -> None:
    found = {**result.to_dict(), "shards": n_shards}
    if result.n_skipped:
        warn(
            f"{result.n_skipped} of {found['queries']} queries have nothing relevant and are left "
            "out of the means that need it; --empty zero counts them as 0"
        )
    if output == "json":
        print_json(found)
        return
    title = (
        f"{found['queries']} queries, {found['database']} items, {found['bits']} bits, "
        f"{n_shards} shard{'s' if n_shards > 1 else ''}, empty queries: {found['empty']}"
    )
    rows = [
        (name, number(row["mean"], 6), str(row["queries"]), str(row["skipped"]), _said(row))
        for name, row in found["metrics"].items()
    ]
    header = "metric", "mean", "queries", "skipped", "conventions"
    print_table(title, header, rows, n_numbers=3)


def _said(row: dict[str, Any]) -> str:
    """The conventions that a name does not show, in one cell."""
    said = row["conventions"]
    words = [said[key] for key in ("ties", "normalise", "gain", "discount") if key in said]
    if "empty_balls" in row:
        words.append(f"{row['empty_balls']:.1%} empty balls score 0")
    return "; ".join(words)
