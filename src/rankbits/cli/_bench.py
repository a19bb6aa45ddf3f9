"""`rankbits bench`: methods under a protocol, beside what the papers report."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from rankbits.benchmark import Protocol, evaluate_codes, protocols, run, write_split
from rankbits.benchmark import protocol as protocol_of
from rankbits.cli._inputs import input_errors_exit_1, named_values, require_writable
from rankbits.cli._options import (
    BITS,
    BY,
    DATA,
    FORMAT,
    METHOD,
    METRIC,
    OUT,
    PARAM,
    SEEDS,
    SPLIT_SEED,
    THREADS,
    OutputFormat,
    QueryKind,
)
from rankbits.cli._output import literal, note, number, print_json, print_table

_MOST_LISTED = 3  # metrics of a protocol

ProtocolArgument = Annotated[str, typer.Argument(help="One of those that bench --list shows.")]
DataOption = Annotated[str, DATA]
MetricOption = Annotated[list[str] | None, METRIC, "More metrics; see rankbits evaluate."]
OutOption = Annotated[str | None, OUT, "Folder with one file per run; a run is done once."]
ThreadsOption = Annotated[int | None, THREADS]
FormatOption = Annotated[OutputFormat, FORMAT]


def bench(
    protocol: Annotated[str | None, typer.Argument(help="One of those that --list shows.")] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the protocols and exit.")] = False,
    data: Annotated[str | None, DATA] = None,
    method: Annotated[list[str] | None, METHOD, "Default: the protocol's; repeat it."] = None,
    bits: Annotated[list[int] | None, BITS, "Default: the protocol's; repeat it for more."] = None,
    seeds: Annotated[int, SEEDS, "Seed i draws split i and the codes."] = 1,
    split_seed: Annotated[
        list[int] | None, SPLIT_SEED, "Draw this split instead; repeat it for more."
    ] = None,
    param: Annotated[
        list[str] | None, PARAM, "Of all methods; METHOD.NAME=VALUE of one. VALUE is JSON."
    ] = None,
    metric: MetricOption = None,
    by: Annotated[QueryKind, BY] = QueryKind.bits,
    out: OutOption = None,
    threads: ThreadsOption = None,
    output: FormatOption = OutputFormat.json,
) -> None:
    """Run methods under PROTOCOL and print their scores beside the published ones."""
    if show:
        _list(output)
        return
    if protocol is None:
        raise typer.BadParameter("name a PROTOCOL, or give --list to see them")
    if data is None:
        raise typer.BadParameter("--data must name the folder or file with the protocol's data")
    params = named_values("--param", param)
    with input_errors_exit_1():
        result = run(
            protocol,
            data,
            method,
            bits,
            seeds=seeds,
            split_seeds=split_seed,
            params=params,
            metrics=metric or (),
            queries="real" if by is QueryKind.weights else "bits",
            out=out,
            n_threads=threads,
            report=_report,
        )
    _print(protocol, result, output)


def bench_codes(
    protocol: ProtocolArgument,
    codes: Annotated[list[str], typer.Argument(help=".npz of codes made elsewhere.")],
    data: DataOption,
    metric: MetricOption = None,
    out: OutOption = None,
    threads: ThreadsOption = None,
    output: FormatOption = OutputFormat.json,
) -> None:
    """Evaluate CODES that were made elsewhere under PROTOCOL, as rankbits bench does its own."""
    with input_errors_exit_1():
        result = evaluate_codes(
            protocol,
            data,
            codes,
            metrics=metric or (),
            out=out,
            n_threads=threads,
            report=_report,
        )
    _print(protocol, result, output)


def bench_split(
    protocol: ProtocolArgument,
    data: DataOption,
    out: Annotated[str, OUT, "File to write, .npz."],
    split_seed: Annotated[int, SPLIT_SEED] = 0,
) -> None:
    """Write the rows of a split of PROTOCOL, for codes made elsewhere, and print its hash."""
    with input_errors_exit_1():
        require_writable(out)
        split_hash = write_split(protocol, data, out, split_seed=split_seed)
    print_json(
        {"file": out, "protocol": protocol, "split_seed": split_seed, "split_hash": split_hash}
    )


def _print(protocol: str, result: dict[str, Any], output: str) -> None:
    if output == "json":
        print_json(result)
    else:
        _print_tables(protocol_of(protocol), result)


def _report(result: dict[str, Any], is_old: bool) -> None:
    """Print one line per run on standard error."""
    settings, seconds = result["settings"], sum(result["seconds"].values())
    values = ", ".join(f"{name} {row['mean']:.4f}" for name, row in result["metrics"].items())
    how = "read from --out" if is_old else f"{seconds:.1f} s"
    note(
        f"{settings['method']}, {settings['bits']} bits, split {settings['split_seed']}, "
        f"seed {settings['seed']}: {values} ({how})"
    )


def _list(output: str) -> None:
    if output == "json":
        print_json({"protocols": [known.to_dict() for known in protocols()]})
        return
    rows = [
        (
            known.name,
            " ".join(map(str, known.bits)),
            _shortened(known.metrics),
            known.files,
            known.title,
        )
        for known in protocols()
    ]
    print_table("Protocols", ("name", "bits", "metrics", "data", "what"), rows, n_numbers=3)


def _shortened(metrics: tuple[str, ...]) -> str:
    """The first three metrics, and how many more there are."""
    rest = len(metrics) - _MOST_LISTED
    return ", ".join(metrics[:_MOST_LISTED]) + (f", {rest} more" if rest > 0 else "")


def _print_tables(chosen: Protocol, result: dict[str, Any]) -> None:
    """One table per metric: one row per method, one column per code length."""
    summary = result["summary"]
    lengths = list(dict.fromkeys(row["bits"] for row in summary))
    n_runs = max(row["runs"] for row in summary)
    header = ("method", *(f"{length} bits" for length in lengths), "fit, s", "from")
    for name in summary[0]["metrics"]:
        spread = f", mean ±sd of {n_runs} runs" if n_runs > 1 else ""
        rows = [*_our_rows(summary, name, lengths), *_their_rows(chosen, name, lengths)]
        print_table(f"{chosen.name}: {literal(name)}{spread}", header, rows, len(lengths) + 1)
    for paper in chosen.published:
        print(f"{paper.data}, {paper.metric}: {paper.source}; {paper.note}")


def _our_rows(
    summary: list[dict[str, Any]], metric: str, lengths: Iterable[int]
) -> list[tuple[str, ...]]:
    cells = {(row["method"], row["bits"]): _cell(row["metrics"][metric]) for row in summary}
    seconds: dict[str, list[float]] = {}
    for row in summary:
        seconds.setdefault(row["method"], []).extend(
            [row["seconds"]["fit"]] if "fit" in row["seconds"] else []
        )
    return [
        (
            method,
            *(cells.get((method, length), "-") for length in lengths),
            number(sum(times) / len(times), 2) if times else "-",
            "this run",
        )
        for method, times in seconds.items()
    ]


def _cell(score: dict[str, float | None]) -> str:
    spread = "" if score["sd"] is None else f" ±{score['sd']:.4f}"
    return f"{number(score['mean'])}{spread}"


def _their_rows(chosen: Protocol, metric: str, lengths: list[int]) -> list[tuple[str, ...]]:
    """Published rows of this metric that have a value at one of the lengths."""
    family = metric.partition("(")[0] if metric in chosen.metrics else None
    return [
        (
            literal(method),
            *(number(row.get(length), 3) for length in lengths),
            "",
            literal(f"{paper.data}, {paper.metric}"),
        )
        for paper in chosen.published
        if paper.family == family
        for method, row in paper.values.items()
        if any(length in row for length in lengths)
    ]
