"""`rankbits report`: one page, or tables, of a folder of results."""

from enum import StrEnum
from typing import Annotated

import typer

from rankbits.cli._inputs import input_errors_exit_1
from rankbits.cli._options import FORMAT
from rankbits.cli._output import print_json


class ReportFormat(StrEnum):
    """What is written."""

    html = "html"
    markdown = "markdown"
    latex = "latex"
    csv = "csv"
    svg = "svg"


FolderArgument = Annotated[
    str,
    typer.Argument(metavar="DIR", help="Folder of results of rankbits bench or rankbits papers."),
]


def report(
    folder: FolderArgument,
    output: Annotated[
        list[ReportFormat] | None,
        FORMAT,
        "Write index.html, tables.md, tables.tex, cells.csv or figures/*.svg; repeat for more.",
    ] = None,
) -> None:
    """Write a self-contained page DIR/index.html of the results in DIR, or tables of them."""
    from rankbits.papers import write_report
    from rankbits.report import require_extra

    formats = tuple(one.value for one in output or (ReportFormat.html,))
    with input_errors_exit_1():
        require_extra()
        paths = write_report(folder, formats)
    print_json({"files": paths})
