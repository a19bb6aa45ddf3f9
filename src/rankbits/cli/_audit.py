"""`rankbits audit`: exact scores of codes beside what tools that break ties would print."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from rankbits._files import write_atomically
from rankbits.cli._inputs import input_errors_exit_1, require_writable
from rankbits.cli._options import (
    EXCLUDE_SELF,
    FORMAT,
    SEED,
    THREADS,
    CodeOptions,
    GradedRelevance,
    OutputFormat,
)
from rankbits.cli._output import note, number, print_json, print_table, progress_bar, warn
from rankbits.cli._runs import load_run
from rankbits.evaluation import Audit
from rankbits.evaluation import audit as audit_codes


class Gain(StrEnum):
    """Gain of a level in nDCG."""

    exp = "exp"
    linear = "linear"


class Discount(StrEnum):
    """Discount of a rank in nDCG."""

    log2 = "log2"
    rsh = "rsh"


NameOption = Annotated[str, typer.Option("--name", help="Name of these codes in the report.")]
CutoffOption = Annotated[
    list[int] | None,
    typer.Option("--cutoff", min=1, help="Of AP; repeat for more; default: 100 and 1000."),
]
ShufflesOption = Annotated[
    int, typer.Option("--shuffles", min=1, max=10_000, help="Number of random orders.")
]
GainOption = Annotated[
    Gain, typer.Option("--gain", help="Gain of nDCG: 2^level - 1, or the level itself.")
]
DiscountOption = Annotated[
    Discount,
    typer.Option("--discount", help="Discount of nDCG: 1/log2(rank + 1), or as in RSH."),
]
PageOption = Annotated[
    str | None, typer.Option("--html", help="Write the report to this file, as one page.")
]


def audit(
    codes: CodeOptions,
    relevance: GradedRelevance,
    exclude_self: Annotated[bool, EXCLUDE_SELF] = False,
    name: NameOption = "codes",
    cutoff: CutoffOption = None,
    shuffles: ShufflesOption = 10,
    gain: GainOption = Gain.exp,
    discount: DiscountOption = Discount.log2,
    html: PageOption = None,
    seed: Annotated[int, SEED, "Seed of the random orders."] = 0,
    threads: Annotated[int | None, THREADS] = None,
    output: Annotated[OutputFormat, FORMAT] = OutputFormat.json,
) -> None:
    """Print exact AP and nDCG beside what common tie-breakers would report, as one JSON object.

    Several shards are joined in the order given.
    """
    settings: dict[str, Any] = {
        "name": name.encode("utf-8", "replace").decode(),  # argv may not be UTF-8
        "ks": cutoff or (100, 1000),
        "n_shuffles": shuffles,
        "random_state": seed,
        "gain": gain.value,
        "discount": discount.value,
        "exclude_self": exclude_self,
        "n_threads": threads,
    }
    with input_errors_exit_1():
        _require_page(html, codes.queries, *(codes.database or ()))
        run = load_run(codes, relevance)
        with progress_bar("ranking") as progress:
            result = audit_codes(run.queries, *run.join_shards(), **settings, progress=progress)
        _write_page(result, html)
    _print(result, output)


def _require_page(path: str | None, *inputs: str | None) -> None:
    """Refuse a page that could not be made before the work that would fill it."""
    if path is not None:
        from rankbits.report import require_extra

        require_writable(path, *inputs)
        require_extra()


def _write_page(result: Audit, path: str | None) -> None:
    if path is not None:
        from rankbits.report import audit_page

        page = audit_page(result).encode()
        with write_atomically(path) as file:
            file.write(page)
        note(f"wrote {path}")


def _print(result: Audit, output: str) -> None:
    if result.n_skipped:
        total = result.n_queries + result.n_skipped
        warn(
            f"{result.n_skipped} of {total} queries have nothing relevant and are left out of "
            "every mean"
        )
    if output == "json":
        print_json(result.to_dict())
        return
    from rich.markup import escape

    title = (
        f"{escape(result.name)}: {result.n_queries} queries, {result.n_items} items, "
        f"{result.n_bits} bits; points are 100 times the difference from the exact score"
    )
    print_table(
        title, ("how ties are broken", "AP", "points", "nDCG", "points"), _score_rows(result)
    )
    if result.cutoffs:
        header = "AP at k, divided by", "k", "exact", "index order", "points"
        print_table("AP at a cutoff", header, _cutoff_rows(result))


def _score_rows(result: Audit) -> list[tuple[str, ...]]:
    ndcg = {row.key: row for row in result.ndcg.rows}
    exact = number(result.ap.expected), "", number(result.ndcg.expected), ""
    rows: list[tuple[str, ...]] = [("Exact: expectation over all orders", *exact)]
    for row in result.ap.rows:
        other = ndcg.get(row.key)
        ndcg_cells = (number(other.value), f"{other.points:+.2f}") if other else ("-", "-")
        rows.append((row.title, number(row.value), f"{row.points:+.2f}", *ndcg_cells))
    return rows


def _cutoff_rows(result: Audit) -> list[tuple[str, ...]]:
    return [
        (
            row.normalise,
            str(row.k),
            number(row.expected),
            number(row.index_order),
            f"{row.order_points:+.2f}",
        )
        for row in result.cutoffs
    ]
