"""A bar on standard error for fits that take long."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def show_progress(verbose: bool | str, unit: str, total: int) -> Iterator[Callable[[str], None]]:
    """A bar if verbose, or if "auto" and standard error is a terminal.

    Yields a function to call after each of so many units, with words that describe it.
    """
    if verbose is False or (verbose == "auto" and not sys.stderr.isatty()):
        yield lambda words: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(unit), BarColumn(), MofNCompleteColumn())
    words_column = TextColumn("{task.description}")
    with Bar(*columns, words_column, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda words: bar.update(task, advance=1, description=words)
