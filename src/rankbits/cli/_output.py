"""What the commands print: JSON or a table on standard output, the rest on standard error."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_QUIET_SECONDS = 1.0


def print_json(result: dict[str, Any]) -> None:
    """One JSON object; NaN would not be JSON and is refused as our own mistake."""
    print(json.dumps(result, indent=2, allow_nan=False))


def print_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], n_numbers: int | None = None
) -> None:
    """A table: a name on the left, then numbers on the right, then words that may wrap.

    n_numbers says how many columns are numbers, by default all after the first. Texts may have
    rich's markup; names from outside go through `literal`. As wide as needed if on no terminal.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD)
    last = len(header) if n_numbers is None else n_numbers
    for place, name in enumerate(header):
        is_number = 0 < place <= last
        table.add_column(name, justify="right" if is_number else "left", no_wrap=place <= last)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(table)


def literal(text: str) -> str:
    """A name from outside for a table: no markup in it, and bytes that are no UTF-8 as "?"."""
    from rich.markup import escape

    return escape(text.encode("utf-8", "replace").decode())


def number(value: float | str | None, digits: int = 4) -> str:
    """A number for a table; what is undefined is a dash."""
    if value is None or isinstance(value, str):
        return value or "-"
    return str(value) if isinstance(value, int) else f"{value:.{digits}f}"


def warn(message: str) -> None:
    """One line on standard error."""
    print(f"warning: {message}", file=sys.stderr)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error once the work has taken a second; None if that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    started = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, visible=False)

        def show(done: int, total: int) -> None:
            is_long = time.monotonic() - started > _QUIET_SECONDS
            bar.update(task, completed=done, total=total, visible=is_long)

        yield show
