"""`rankbits audit`: exact scores of codes beside what tools that break ties would print."""

from enum import StrEnum
from typing import Annotated

import typer

from rankbits._files import write_atomically
from rankbits.cli import _inputs
from rankbits.cli._inputs import input_errors_exit_1, load_run, require_writable
from rankbits.cli._output import note, number, print_json, print_table, progress_bar, warn
from rankbits.evaluate._audit import audit as audit_codes
from rankbits.evaluate._audit_result import Audit


class Gain(StrEnum):
    """Gain of a level in nDCG."""

    exp = "exp"
    linear = "linear"


class Discount(StrEnum):
    """Discount of a rank in nDCG."""

    log2 = "log2"
    rsh = "rsh"


def audit(
    queries: _inputs.QueriesOption,
    database: _inputs.DatabaseOption,
    bits: _inputs.BitsOption = None,
    codes: _inputs.FormOption = _inputs.CodeForm.auto,
    query_labels: _inputs.QueryLabelsOption = None,
    database_labels: _inputs.DatabaseLabelsOption = None,
    judgements: _inputs.JudgementsOption = None,
    graded: _inputs.GradedOption = False,
    exclude_self: _inputs.ExcludeSelfOption = False,
    name: Annotated[str, typer.Option("--name", help="What to call these codes.")] = "codes",
    k: Annotated[
        list[int] | None,
        typer.Option("--k", min=1, help="Cutoff of AP; again for more; else 100 and 1000."),
    ] = None,
    shuffles: Annotated[
        int, typer.Option("--shuffles", min=1, max=10_000, help="Random orders to try.")
    ] = 10,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random orders.")] = 0,
    gain: Annotated[Gain, typer.Option("--gain", help="2^level - 1, or level.")] = Gain.exp,
    discount: Annotated[
        Discount, typer.Option("--discount", help="1/log2(rank + 1), or as in RSH.")
    ] = Discount.log2,
    threads: _inputs.ThreadsOption = None,
    html: Annotated[
        str | None, typer.Option("--html", help="Write one self-contained page here.")
    ] = None,
    output: _inputs.FormatOption = _inputs.OutputFormat.json,
) -> None:
    """Print exact AP and nDCG beside what common tie-breakers would report, as one JSON object.

    Several shards are joined in the order given.
    """
    with input_errors_exit_1():
        _require_page(html)
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
        with progress_bar("ranking") as progress:
            found = audit_codes(
                run.queries,
                *run.whole(),
                name=name.encode("utf-8", "replace").decode(),  # argv may not be UTF-8
                ks=k or (100, 1000),
                n_shuffles=shuffles,
                random_state=seed,
                gain=gain.value,
                discount=discount.value,
                exclude_self=exclude_self,
                n_threads=threads,
                progress=progress,
            )
        _write_page(found, html)
    _print(found, output)


def _require_page(path: str | None) -> None:
    """Refuse a page that could not be made before the work that would fill it."""
    if path is not None:
        from rankbits.report import require_extra

        require_writable(path)
        require_extra()


def _write_page(found: Audit, path: str | None) -> None:
    if path is not None:
        from rankbits.report import audit_page

        page = audit_page(found).encode()
        with write_atomically(path) as file:
            file.write(page)
        note(f"wrote {path}")


def _print(found: Audit, output: str) -> None:
    if found.n_skipped:
        total = found.n_queries + found.n_skipped
        warn(
            f"{found.n_skipped} of {total} queries have nothing relevant and are left out of "
            "every mean"
        )
    if output == "json":
        print_json(found.to_dict())
        return
    from rich.markup import escape

    title = (
        f"{escape(found.name)}: {found.n_queries} queries, {found.n_items} items, "
        f"{found.n_bits} bits; points are 100 times the difference from the exact score"
    )
    print_table(title, ("ties broken how", "AP", "points", "nDCG", "points"), _score_rows(found))
    if found.cutoffs:
        header = "AP at k, divided by", "k", "exact", "index order", "points"
        print_table("AP at a cutoff", header, _cutoff_rows(found))


def _score_rows(found: Audit) -> list[tuple[str, ...]]:
    ndcg = {row.key: row for row in found.ndcg.rows}
    exact = number(found.ap.expected), "", number(found.ndcg.expected), ""
    rows: list[tuple[str, ...]] = [("Exact: expectation over all orders", *exact)]
    for row in found.ap.rows:
        other = ndcg.get(row.key)
        theirs = (number(other.value), f"{other.points:+.2f}") if other else ("-", "-")
        rows.append((row.title, number(row.value), f"{row.points:+.2f}", *theirs))
    return rows


def _cutoff_rows(found: Audit) -> list[tuple[str, ...]]:
    return [
        (
            row.normalise,
            str(row.k),
            number(row.expected),
            number(row.index_order),
            f"{row.order_points:+.2f}",
        )
        for row in found.cutoffs
    ]
