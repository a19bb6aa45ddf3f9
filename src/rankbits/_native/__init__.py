"""The native kernels, and which instruction set of theirs runs.

`RANKBITS_DISPATCH=portable` (or `avx2`, or `avx512`) chooses a set for the whole process; without
it the best that the CPU has is used. Every set counts the same; sums of real numbers may differ in
the last digits. `RANKBITS_NUM_THREADS` bounds the threads of a call that does not say how many it
wants. Both are read at the first call, not at import, so that a wrong value is an error like any
other.

Called from `codes`, `histogram`, `objectives` and `index`, and from `_mapped`, which watches files.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from rankbits import _check
from rankbits._native._kernels import (
    Lists,
    Mih,
    RankedTies,
    SoftHistogram32,
    SoftHistogram64,
    accept_mapping,
    ap_of_counts,
    are_within,
    best_scores,
    count_classes,
    count_levels,
    count_tags,
    dispatch_levels,
    distances,
    from_planes,
    improve_codes,
    largest_counts,
    level_range,
    look_at_mapping,
    multiply_rows,
    polygammas,
    release_mapping,
    scan,
    scan_real,
    score_bytes,
    score_tables,
    score_vectors,
    soft_histogram,
    tabulate_ties,
    to_planes,
    watch_mapping,
)
from rankbits._native._kernels import dispatch as _dispatch
from rankbits._native._kernels import use_dispatch as _use_dispatch
from rankbits.errors import InputError

__all__ = [
    "Lists",
    "Mih",
    "RankedTies",
    "SoftHistogram",
    "accept_mapping",
    "ap_of_counts",
    "are_within",
    "best_scores",
    "count_classes",
    "count_levels",
    "count_tags",
    "dispatch",
    "dispatch_levels",
    "dispatched",
    "distances",
    "from_planes",
    "improve_codes",
    "largest_counts",
    "level_range",
    "look_at_mapping",
    "multiply_rows",
    "polygammas",
    "release_mapping",
    "scan",
    "scan_real",
    "score_bytes",
    "score_tables",
    "score_vectors",
    "soft_histogram",
    "tabulate_ties",
    "threads",
    "to_planes",
    "use_dispatch",
    "watch_mapping",
]

SoftHistogram = SoftHistogram32 | SoftHistogram64


@cache
def _heed_environment() -> None:
    """Use the instruction set that RANKBITS_DISPATCH names, if it names one."""
    if os.environ.get("RANKBITS_DISPATCH"):
        use_dispatch(os.environ["RANKBITS_DISPATCH"])


def dispatch() -> str:
    """The instruction set in use."""
    _heed_environment()
    return _dispatch()


def use_dispatch(name: str) -> None:
    """Run the kernels of the named instruction set from now on."""
    if not _use_dispatch(name):
        known = ", ".join(dispatch_levels())
        raise InputError(f"RANKBITS_DISPATCH must be one of {known} on this machine, got {name!r}")


@contextmanager
def dispatched(name: str) -> Iterator[None]:
    """Run a block under the named instruction set: for tests and benchmarks."""
    before = dispatch()
    use_dispatch(name)
    try:
        yield
    finally:
        use_dispatch(before)


def threads(n_threads: int | None) -> int:
    """Threads of a call: as given, else RANKBITS_NUM_THREADS, else all this process may use."""
    _heed_environment()
    if n_threads is not None:
        return _check.whole("n_threads", n_threads, 1, 1024)
    setting = os.environ.get("RANKBITS_NUM_THREADS", "")
    if not setting:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if not setting.isdecimal() or not 1 <= int(setting) <= 1024:
        raise InputError(f"RANKBITS_NUM_THREADS must be a number from 1 to 1024, got {setting!r}")
    return int(setting)
