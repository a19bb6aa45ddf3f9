"""The command line: one app, and one private module for each command."""

import gc
import sys
from typing import Annotated

import typer

from rankbits.cli._audit import audit
from rankbits.cli._bench import bench, bench_codes, bench_split
from rankbits.cli._cluster import cluster
from rankbits.cli._commands import Commands
from rankbits.cli._compare import compare
from rankbits.cli._compress import compress, compress_check
from rankbits.cli._demo import demo
from rankbits.cli._encode import encode
from rankbits.cli._evaluate import evaluate
from rankbits.cli._export import export
from rankbits.cli._fit import fit
from rankbits.cli._index import index
from rankbits.cli._papers import papers
from rankbits.cli._report import report
from rankbits.cli._search import search
from rankbits.cli._serve import serve

_INTERRUPTED = 130

app = Commands(
    name="rankbits",
    help="Binary codes that rank: learned, encoded, and evaluated exactly under ties.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    compress,
    compress_check,
    search,
    fit,
    encode,
    export,
    evaluate,
    audit,
    compare,
    serve,
    bench,
    bench_codes,
    bench_split,
    papers,
    report,
    demo,
):
    app.command()(command)
app.add_typer(index, name="index")
app.add_typer(cluster, name="cluster")


def _print_version(is_given: bool) -> None:
    if is_given:
        from rankbits import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Binary codes that rank: learned, encoded, and evaluated exactly under ties."""


def main() -> None:
    """Run the command line; Ctrl-C ends it with 130 and one line wherever it strikes."""
    try:
        app()
    except (KeyboardInterrupt, SystemExit) as end:
        if isinstance(end, SystemExit) and end.code != _INTERRUPTED:
            raise
        print("interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    finally:
        gc.freeze()  # else the interpreter, as it ends, searches all of torch for garbage: 0.3 s
