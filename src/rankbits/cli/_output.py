"""What the commands print: JSON or a table on standard output, notes on standard error."""

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_SECONDS_BEFORE_BAR = 1.0
_is_quiet: ContextVar[bool] = ContextVar("_is_quiet", default=False)


@contextmanager
def quiet_if(is_quiet: bool) -> Iterator[None]:
    """If `is_quiet`, print nothing on standard error but errors within this block."""
    token = _is_quiet.set(is_quiet)
    try:
        with warnings.catch_warnings():
            if is_quiet:
                warnings.simplefilter("ignore")
            yield
    finally:
        _is_quiet.reset(token)


def is_quiet() -> bool:
    """Whether the command was called with --quiet."""
    return _is_quiet.get()


def note(message: str) -> None:
    """A line on standard error, unless --quiet was given."""
    if not is_quiet():
        print(message, file=sys.stderr)


def print_json(result: dict[str, Any]) -> None:
    """Print one JSON object; NaN is not JSON, so a result that holds it is a bug."""
    print(json.dumps(result, indent=2, allow_nan=False))


def print_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], n_numbers: int | None = None
) -> None:
    """Print a table: names on the left, then numbers on the right, then text that may wrap.

    `n_numbers` is how many columns are numbers, by default all after the first. Texts may have
    rich's markup; names from outside go through `literal`. Without a terminal, the table is as wide
    as it needs to be.
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
    """A name from outside for a table: markup is escaped, bytes that are not UTF-8 become "?"."""
    from rich.markup import escape

    return escape(text.encode("utf-8", "replace").decode())


def number(value: float | str | None, digits: int = 4) -> str:
    """A number for a table; an undefined one is a dash."""
    if value is None or isinstance(value, str):
        return value or "-"
    return str(value) if isinstance(value, int) else f"{value:.{digits}f}"


def warn(message: str) -> None:
    """A line on standard error that begins with "warning:", unless --quiet was given."""
    note(f"warning: {message}")


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error once the work has taken a second; None without a terminal."""
    if is_quiet() or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    started = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, visible=False)

        def show(done: int, total: int) -> None:
            is_long = time.monotonic() - started > _SECONDS_BEFORE_BAR
            bar.update(task, completed=done, total=total, visible=is_long)

        yield show
