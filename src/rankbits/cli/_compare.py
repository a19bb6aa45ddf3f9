"""`rankbits compare`: is the difference between two evaluations real?"""

from typing import Annotated, Any

import typer

from rankbits.cli._inputs import input_errors_exit_1
from rankbits.cli._options import FORMAT, METRIC, SEED, OutputFormat
from rankbits.cli._output import literal, number, print_json, print_table
from rankbits.errors import InputError
from rankbits.evaluation import compare as compare_values
from rankbits.evaluation import load_per_query


def compare(
    a: Annotated[
        str, typer.Argument(help="Per-query values: the .parquet file of evaluate --per-query.")
    ],
    b: Annotated[
        str, typer.Argument(help="Per-query values of the other codes, for the same queries.")
    ],
    metric: Annotated[list[str] | None, METRIC, "Repeat it; default: all that both have."] = None,
    resamples: Annotated[
        int, typer.Option("--resamples", min=1, help="Number of bootstrap samples.")
    ] = 10_000,
    seed: Annotated[int, SEED, "Seed of the bootstrap samples."] = 0,
    output: Annotated[OutputFormat, FORMAT] = OutputFormat.json,
) -> None:
    """Compare B with A query by query: paired bootstrap and paired t-test of each metric."""
    with input_errors_exit_1():
        values_a, values_b = load_per_query(a), load_per_query(b)
        for name in metric or []:
            for path, values in ((a, values_a), (b, values_b)):
                if name not in values:
                    raise InputError(
                        f"--metric {name} must be in both files, {path} has {', '.join(values)}"
                    )
        chosen = {name: values_a[name] for name in metric or values_a}
        comparison = compare_values(chosen, values_b, n_resamples=resamples, random_state=seed)
    result = {"a": a, "b": b, **comparison.to_dict()}
    if output == "json":
        print_json(result)
    else:
        _print_table(result)


def _print_table(result: dict[str, Any]) -> None:
    rows = [
        (
            literal(name),
            number(row["mean_a"]),
            number(row["mean_b"]),
            number(row["difference"]),
            f"{number(row['low'])} .. {number(row['high'])}",
            number(row["p_bootstrap"]),
            number(row["p_t"]),
            f"{row['wins']}/{row['ties']}/{row['losses']}",
            f"{row['queries']} (-{row['left_out']})",
        )
        for name, row in result["metrics"].items()
    ]
    header = "metric", "A", "B", "B - A", "95 % interval", "p boot.", "p t-test"
    title = f"A = {result['a']}, B = {result['b']}, {result['resamples']} resamples"
    print_table(literal(title), (*header, "B wins/ties/loses", "queries"), rows)
