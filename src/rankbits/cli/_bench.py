"""`rankbits bench`: methods under a protocol, beside what the papers report."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any

import typer

from rankbits.benchmark import Protocol, evaluate_codes, protocols, run, write_split
from rankbits.benchmark import protocol as protocol_of
from rankbits.cli._inputs import (
    FormatOption,
    OutputFormat,
    ThreadsOption,
    input_errors_exit_1,
    named_values,
    require_writable,
)
from rankbits.cli._output import literal, note, number, print_json, print_table

_MOST_LISTED = 3  # metrics of a protocol


class QueryKind(StrEnum):
    """How queries are given to the evaluation."""

    bits = "bits"
    real = "real"


ProtocolArgument = Annotated[
    str | None, typer.Argument(metavar="PROTOCOL", help="One of those that --list shows.")
]
ListOption = Annotated[bool, typer.Option("--list", help="Show the protocols and exit.")]
DataOption = Annotated[
    str | None, typer.Option("--data", help="Folder or file with the protocol's data.")
]
MethodOption = Annotated[
    list[str] | None,
    typer.Option("--method", help="Repeat it for more methods; default: the protocol's."),
]
BitsOption = Annotated[
    list[int] | None, typer.Option("--bits", help="Code length; repeat it for more.")
]
SeedsOption = Annotated[
    int,
    typer.Option("--seeds", min=1, help="Number of seeds; seed i draws split i and the codes."),
]
SplitSeedOption = Annotated[
    list[int] | None,
    typer.Option("--split-seed", min=0, help="Draw this split instead; repeat it for more."),
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="[METHOD.]NAME=VALUE",
        help="Parameter of all methods, or of one; VALUE is JSON.",
    ),
]
MetricOption = Annotated[
    list[str] | None, typer.Option("--metric", help="More metrics; see rankbits evaluate.")
]
QueriesOption = Annotated[
    QueryKind,
    typer.Option(
        "--queries", help="Evaluate queries as codes, or by real weights of the bits of items."
    ),
]
OutOption = Annotated[
    str | None,
    typer.Option("--out", help="Folder with one file per run; finished runs are not repeated."),
]

CodesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--codes",
        metavar="FILE",
        help="Evaluate the codes of this .npz instead of learning; repeat it for more.",
    ),
]
WriteSplitOption = Annotated[
    str | None,
    typer.Option(
        "--write-split",
        metavar="FILE",
        help="Write the rows of the split to this .npz, for codes made elsewhere, and exit.",
    ),
]


def bench(
    protocol: ProtocolArgument = None,
    show: ListOption = False,
    data: DataOption = None,
    method: MethodOption = None,
    bits: BitsOption = None,
    seeds: SeedsOption = 1,
    split_seed: SplitSeedOption = None,
    param: ParamOption = None,
    metric: MetricOption = None,
    queries: QueriesOption = QueryKind.bits,
    codes: CodesOption = None,
    split_file: WriteSplitOption = None,
    out: OutOption = None,
    threads: ThreadsOption = None,
    output: FormatOption = OutputFormat.json,
) -> None:
    """Run methods under PROTOCOL and print their scores beside the published ones.

    With --codes, evaluate codes that were made elsewhere.
    """
    if show:
        _list(output)
        return
    if protocol is None:
        raise typer.BadParameter("name a PROTOCOL, or give --list to see them")
    if data is None:
        raise typer.BadParameter("--data must name the folder or file with the protocol's data")
    params = named_values("--param", param)
    if split_file is not None:
        _write_split(protocol, data, split_file, split_seed)
        return
    if codes and (method or bits or param or split_seed or seeds > 1 or queries != "bits"):
        raise typer.BadParameter("--codes says all about the codes; it goes with --metric alone")
    with input_errors_exit_1():
        result = (
            evaluate_codes(
                protocol,
                data,
                codes,
                metrics=metric or (),
                out=out,
                n_threads=threads,
                report=_report,
            )
            if codes
            else run(
                protocol,
                data,
                method,
                bits,
                seeds=seeds,
                split_seeds=split_seed,
                params=params,
                metrics=metric or (),
                queries=queries.value,
                out=out,
                n_threads=threads,
                report=_report,
            )
        )
    if output == "json":
        print_json(result)
    else:
        _print_tables(protocol_of(protocol), result)


def _write_split(protocol: str, data: str, path: str, split_seeds: list[int] | None) -> None:
    """Write the rows of one split and print its hash."""
    if split_seeds and len(split_seeds) > 1:
        raise typer.BadParameter("--write-split writes one split; give --split-seed once")
    seed = split_seeds[0] if split_seeds else 0
    with input_errors_exit_1():
        require_writable(path)
        split_hash = write_split(protocol, data, path, split_seed=seed)
    print_json({"file": path, "protocol": protocol, "split_seed": seed, "split_hash": split_hash})


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
