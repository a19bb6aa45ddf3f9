"""`rankbits evaluate`: codes, vectors or lists of results and labels in, metrics out."""

from dataclasses import asdict, astuple
from typing import Annotated, Any

import typer

from rankbits.cli import _evaluation_runs as runs
from rankbits.cli import _inputs
from rankbits.cli._cluster import ClusterOption
from rankbits.cli._cluster_runs import evaluate_on_cluster
from rankbits.cli._inputs import VectorMetric, input_errors_exit_1, require_writable
from rankbits.cli._output import number, print_json, print_table, warn
from rankbits.cli._runs import RelevanceFiles, RunFiles
from rankbits.evaluation import Evaluation, save_per_query
from rankbits.metrics import parse_metrics

VectorsOption = Annotated[
    bool,
    typer.Option(
        "--vectors",
        help="--queries and --database hold float vectors: rank by these.",
    ),
]
VectorMetricOption = Annotated[
    VectorMetric, typer.Option("--vector-metric", help="What --vectors are ranked by.")
]
QueryWeightsOption = Annotated[
    str | None,
    typer.Option(
        "--query-weights",
        help="Instead of --queries: a real number for each bit of each query; codes are ranked "
        "by the inner product with them.",
    ),
]
RankingsOption = Annotated[
    str | None,
    typer.Option(
        "--rankings",
        help="Instead of codes: results of any engine, as a TREC run or a .npz with ids.",
    ),
]
ReferenceOption = Annotated[
    str | None,
    typer.Option(
        "--reference", help="Results of a reference ranking for overlap@k, as --rankings."
    ),
]
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
    vectors: VectorsOption = False,
    vector_metric: VectorMetricOption = VectorMetric.cosine,
    query_weights: QueryWeightsOption = None,
    rankings: RankingsOption = None,
    reference: ReferenceOption = None,
    histogram: HistogramOption = None,
    metric: MetricOption = None,
    empty: _inputs.EmptyOption = _inputs.EmptyPolicy.skip,
    exclude_self: _inputs.ExcludeSelfOption = False,
    threads: _inputs.ThreadsOption = None,
    output: _inputs.FormatOption = _inputs.OutputFormat.json,
    per_query: PerQueryOption = None,
    save_histogram: SaveHistogramOption = None,
    cluster: ClusterOption = None,
) -> None:
    """Score codes, vectors or lists of results by how they rank, exactly under ties.

    The metrics are printed as one JSON object.
    """
    request = runs.EvaluationRequest(metric or ["AP"], empty, exclude_self, threads)
    relevance = RelevanceFiles(
        query_labels, database_labels, judgements, query_ids, database_ids, graded
    )
    details: dict[str, Any] = {"shards": len(histogram or database or ("rankings",))}
    with input_errors_exit_1():
        parse_metrics(request.metrics)
        for path in (per_query, save_histogram):
            inputs = queries, query_weights, rankings, *(database or ()), *(histogram or ())
            require_writable(path, *inputs)
        sources = {
            "--histogram": bool(histogram),
            "--rankings": rankings is not None,
            "--query-weights": query_weights is not None,
            "--vectors": vectors,
        }
        _require_one_source(sources, queries, database)
        _require_codes_for(cluster, sources, reference)
        if save_histogram is not None and (rankings or query_weights or vectors):
            raise typer.BadParameter("--save-histogram is for codes ranked by Hamming distance")
        files = RunFiles(query_weights or queries, database, relevance, bits, codes.value)
        if histogram:
            _refuse_codes(relevance, bits, threads, reference)
            result, counts = runs.evaluate_saved(histogram, request), None
        elif rankings is not None:
            result, counts = runs.evaluate_lists(rankings, reference, relevance, request)
        elif query_weights is not None:
            result, counts = runs.evaluate_weights(files, reference, request)
        elif vectors:
            result, counts = runs.evaluate_vectors(files, reference, vector_metric, request)
        elif cluster is not None:
            result, counts = evaluate_on_cluster(files, request, cluster)
        else:
            result, counts = runs.evaluate_run(files, reference, request)
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


def _require_one_source(
    sources: dict[str, bool], queries: str | None, database: list[str] | None
) -> None:
    """Exactly one kind of run, with the files that it needs and no others."""
    chosen = [option for option, is_given in sources.items() if is_given]
    if len(chosen) > 1:
        raise typer.BadParameter(f"give one of {' and '.join(chosen)}, not both")
    option = chosen[0] if chosen else ""
    if option in ("--histogram", "--rankings") and (queries or database):
        raise typer.BadParameter(
            f"give {option}, or codes and labels and how to read them, not both"
        )
    if option == "--query-weights" and (queries is not None or not database):
        raise typer.BadParameter("give --query-weights with --database, and without --queries")
    if option in ("", "--vectors") and (queries is None or not database):
        raise typer.BadParameter("give --queries and --database, or --histogram, or --rankings")


def _require_codes_for(
    cluster: str | None, sources: dict[str, bool], reference: str | None
) -> None:
    """A cluster counts codes by Hamming distance."""
    others = [option for option, is_given in sources.items() if is_given]
    others += [] if reference is None else ["--reference"]
    if cluster is not None and others:
        raise typer.BadParameter(f"--cluster counts codes, it must come without {others[0]}")


def _refuse_codes(relevance: RelevanceFiles, *others: Any) -> None:
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
