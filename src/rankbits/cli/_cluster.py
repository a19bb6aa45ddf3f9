"""What the commands with --cluster share, and `rankbits cluster`."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

from rankbits.cli._commands import Commands
from rankbits.cli._inputs import input_errors_exit_1
from rankbits.cli._options import CLUSTER
from rankbits.cli._output import is_quiet, note, print_json

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_FRAMES = 0.2
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))

cluster = Commands(help="What a Ray cluster has.", no_args_is_help=True)


@cluster.callback()
def cluster_options() -> None:
    """What a Ray cluster has."""


@cluster.command()
def info(
    address: Annotated[str, CLUSTER, "auto, or HOST:PORT of the head node."] = "auto",
) -> None:
    """Print the machines of a cluster with their processors, memory and versions."""
    with input_errors_exit_1():
        from rankbits.distributed import cluster_info

        result = cluster_info(address)
    print_json(result)


@contextmanager
def rate_progress(what: str, unit: str) -> Iterator[Callable[[int, int], None] | None]:
    """Progress on standard error with a rate and an estimate: one line, or a line now and then."""
    if is_quiet():
        yield None
        return
    is_terminal = sys.stderr.isatty()
    pause = _SECONDS_BETWEEN_FRAMES if is_terminal else _SECONDS_BETWEEN_LINES
    started, first, last = time.monotonic(), -1, time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal first, last
        first = done if first < 0 else first
        now = time.monotonic()
        if now - last < pause:
            return
        last = now
        text = f"{what}: {describe_rate(done - first, total - done, now - started, unit)}"
        text = f"{text}, {done / max(1, total):.0%} done"
        if is_terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        else:
            note(text)

    try:
        yield show
    finally:
        if is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def describe_rate(n_done: int, n_left: int, seconds: float, unit: str) -> str:
    """How fast something goes and how long it will take.

    >>> describe_rate(3_000_000, 6_000_000, 2.0, "rows")
    '1.5 M rows/s, 4 s left'
    """
    rate = n_done / max(seconds, 1e-9)
    left = f"{n_left / rate:.0f} s left" if rate > 0 else "no estimate yet"
    for size, letter in _UNITS:
        if rate >= size:
            return f"{rate / size:.1f} {letter} {unit}/s, {left}"
    return f"{rate:.0f} {unit}/s, {left}"
