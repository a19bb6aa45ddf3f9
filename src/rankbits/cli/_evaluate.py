"""`rankbits evaluate`: codes, vectors or lists of results and labels in, metrics out."""

from dataclasses import asdict, astuple
from enum import StrEnum
from typing import Annotated, Any

import typer

from rankbits.affinity import QrelsCounts
from rankbits.cli import _evaluation_runs as runs
from rankbits.cli._cluster_runs import evaluate_on_cluster
from rankbits.cli._inputs import input_errors_exit_1, require_writable
from rankbits.cli._options import (
    BY,
    CLUSTER,
    EXCLUDE_SELF,
    FORMAT,
    METRIC,
    SIMILARITY,
    THREADS,
    CodeOptions,
    GradedRelevance,
    OutputFormat,
    QueryKind,
    Similarity,
)
from rankbits.cli._output import number, print_json, print_table, warn
from rankbits.evaluation import Evaluation, save_per_query
from rankbits.metrics import parse_metrics


class EmptyPolicy(StrEnum):
    """How a query without any relevant item counts."""

    skip = "skip"
    zero = "zero"
    error = "error"


RankingsOption = Annotated[
    str | None,
    typer.Option("--rankings", help="Instead of codes: results, a TREC run or a .npz."),
]
ReferenceOption = Annotated[
    str | None, typer.Option("--reference", help="Lists of a reference ranking, for overlap@k.")
]
HistogramOption = Annotated[
    list[str] | None,
    typer.Option("--histogram", help="Instead of codes: a saved one; repeat for shards."),
]
EmptyOption = Annotated[
    EmptyPolicy, typer.Option("--empty", help="How a query without relevant items counts.")
]
PerQueryOption = Annotated[
    str | None, typer.Option("--per-query", help="Write each query's values to this .parquet.")
]
SaveHistogramOption = Annotated[
    str | None, typer.Option("--save-histogram", help="Write the tie histogram to this .npz.")
]


def evaluate(
    codes: CodeOptions,
    relevance: GradedRelevance,
    by: Annotated[QueryKind, BY] = QueryKind.bits,
    similarity: Annotated[
        Similarity | None, SIMILARITY, "Rank vectors, not codes, by this."
    ] = None,
    rankings: RankingsOption = None,
    reference: ReferenceOption = None,
    histogram: HistogramOption = None,
    metric: Annotated[list[str] | None, METRIC] = None,
    empty: EmptyOption = EmptyPolicy.skip,
    exclude_self: Annotated[bool, EXCLUDE_SELF] = False,
    per_query: PerQueryOption = None,
    save_histogram: SaveHistogramOption = None,
    threads: Annotated[int | None, THREADS] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    output: Annotated[OutputFormat, FORMAT] = OutputFormat.json,
) -> None:
    """Score codes, vectors or lists of results by how they rank, exactly under ties.

    Files are .npy, .npz, .parquet or .safetensors; FILE:KEY names one array of several.
    """
    request = runs.EvaluationRequest(metric or ["AP"], empty, exclude_self, threads, reference)
    details: dict[str, Any] = {"shards": len(histogram or codes.database or ("rankings",))}
    sources = {
        "--histogram": bool(histogram),
        "--rankings": rankings is not None,
        "--by weights": by is QueryKind.weights,
        "--similarity": similarity is not None,
    }
    chosen = [option for option, is_given in sources.items() if is_given]
    counts: QrelsCounts | None = None
    with input_errors_exit_1():
        parse_metrics(request.metrics)
        for path in (per_query, save_histogram):
            inputs = codes.queries, rankings, *(codes.database or ()), *(histogram or ())
            require_writable(path, *inputs)
        _require_one_source(chosen, codes)
        if save_histogram is not None and chosen and not histogram:
            raise typer.BadParameter("--save-histogram is for codes ranked by Hamming distance")
        if cluster is not None and (chosen or reference is not None):
            other = [*chosen, "--reference"][0]
            raise typer.BadParameter(f"--cluster counts codes, it must come without {other}")
        if histogram:
            _refuse_codes(relevance, codes.bits, threads, reference)
            result = runs.evaluate_saved(histogram, request)
        elif rankings is not None:
            result, counts = runs.evaluate_lists(rankings, relevance, request)
        elif by is QueryKind.weights:
            result, counts = runs.evaluate_weights(codes, relevance, request)
        elif similarity is not None:
            result, counts = runs.evaluate_vectors(codes, relevance, request, similarity)
        elif cluster is not None:
            result, counts = evaluate_on_cluster(codes, relevance, request, cluster)
        else:
            result, counts = runs.evaluate_run(codes, relevance, request)
        if counts is not None:
            details["judgements"] = {
                name.removeprefix("n_"): count for name, count in asdict(counts).items()
            }
        _write(result, per_query, save_histogram)
    _print(result, details, output)


def _write(result: Evaluation, per_query: str | None, histogram: str | None) -> None:
    """Write the files that were asked for."""
    if per_query is not None:
        save_per_query(result, per_query)
    if histogram is not None:
        result.histogram.save(histogram)


def _require_one_source(chosen: list[str], codes: CodeOptions) -> None:
    """Exactly one kind of run, with the files that it needs and no others."""
    if len(chosen) > 1:
        raise typer.BadParameter(f"give one of {' and '.join(chosen)}, not both")
    has_lists = chosen in (["--histogram"], ["--rankings"])
    if has_lists and (codes.queries or codes.database):
        raise typer.BadParameter(
            f"give {chosen[0]}, or codes and labels and how to read them, not both"
        )
    if not has_lists and (codes.queries is None or not codes.database):
        raise typer.BadParameter("give --queries and --database, or --histogram, or --rankings")


def _refuse_codes(relevance: GradedRelevance, *others: Any) -> None:
    if any(astuple(relevance)) or any(others):
        raise typer.BadParameter(
            "give --histogram, or codes and labels and how to read them, not both"
        )


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
    bits = "" if result.n_bits is None else f"{result.n_bits} bits, "
    title = (
        f"{summary['queries']} queries, {summary['database']} items, {bits}"
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
