"""`rankbits papers`: every table and figure of the papers, run again."""

from typing import TYPE_CHECKING, Annotated

import typer

from rankbits.cli._inputs import input_errors_exit_1
from rankbits.cli._options import BITS, DATA, METHOD, OUT, SEEDS, THREADS
from rankbits.cli._output import note, print_json

if TYPE_CHECKING:
    from rankbits.papers import Exhibit, Progress

_MINUTE = 60

IdArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="Tables and figures; without any, all ids are listed."),
]
AllOption = Annotated[bool, typer.Option("--all", help="Run everything.")]
QuickOption = Annotated[
    bool,
    typer.Option("--quick", help="Small versions on embedded data, which need no --data."),
]


def papers(
    ids: IdArgument = None,
    data: Annotated[str | None, DATA] = None,
    everything: AllOption = False,
    quick: QuickOption = False,
    method: Annotated[list[str] | None, METHOD] = None,
    bits: Annotated[list[int] | None, BITS, "Instead of the paper's; repeat it for more."] = None,
    seeds: Annotated[int | None, SEEDS, "Number of seeds; default: 3, or 1 if quick."] = None,
    threads: Annotated[int | None, THREADS] = None,
    out: Annotated[str | None, OUT, "Folder with one file per run; a run is done once."] = None,
) -> None:
    """Run the tables and figures ID of the papers again, or list their ids.

    A run that is stopped goes on where it stopped. `rankbits report` makes a page of the folder.
    """
    from rankbits.papers import exhibit, exhibits

    if not ids and not everything:
        print("\n".join(known.id for known in exhibits()))
        return
    if ids and everything:
        raise typer.BadParameter("give ids or --all, not both")
    if out is None:
        raise typer.BadParameter("--out must name the folder for the results")
    with input_errors_exit_1():
        chosen = list(exhibits()) if everything else [exhibit(name) for name in ids or ()]
        if data is None and not quick and any(one.parts for one in chosen):
            raise typer.BadParameter("--data must name the folder with the data; or give --quick")
        _run(chosen, out, data, quick, method, bits, seeds, threads)
    print_json({"ids": [one.id for one in chosen], "out": out, "quick": quick})


def _run(
    chosen: "list[Exhibit]",
    out: str,
    data: str | None,
    quick: bool,
    methods: list[str] | None,
    bits: list[int] | None,
    seeds: int | None,
    threads: int | None,
) -> None:
    from rankbits.papers import run

    run(
        chosen,
        out,
        data=data,
        quick=quick,
        methods=methods,
        bits=bits,
        seeds=seeds,
        n_threads=threads,
        report=_report,
        skip=note if len(chosen) > 1 else None,
    )


def _report(progress: "Progress") -> None:
    """Print one line per run on standard error: what it was, how long, and what is left."""
    settings = progress.result["settings"]
    seconds = sum(progress.result["seconds"].values())
    how = "there already" if progress.is_old else f"{seconds:.1f} s"
    left = "" if progress.seconds_left is None else f", {_duration(progress.seconds_left)} left"
    note(
        f"[{progress.done}/{progress.total}] {settings['protocol']['name']}, {settings['method']}, "
        f"{settings['bits']} bits, seed {settings['seed']}: {how}{left}"
    )


def _duration(seconds: float) -> str:
    """An estimate in words.

    >>> _duration(130.0)
    'about 2 min'
    """
    if seconds < _MINUTE:
        return f"about {seconds:.0f} s"
    minutes = seconds / _MINUTE
    return f"about {minutes:.0f} min" if minutes < 2 * _MINUTE else f"about {minutes / 60:.1f} h"
