"""The plan: what will run, how long it will take, and what is left out where time is short.

Seconds are estimated by a small fit of every way to make codes and a small search, both on a sample
of the items, and scaled: fits grow with rows and bits, encoding and searches with items and bits.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits.compress._candidates import Coder, create_hasher
from rankbits.compress._searching import QUERY_KINDS, build_search
from rankbits.compress._task import Task
from rankbits.errors import InputError
from rankbits.evaluation import nearest_vectors

_PROBE_ROWS, _PROBE_ITEMS, _PROBE_QUERIES = 1000, 10_000, 100
_SAFETY = 1.25  # of estimates, where they decide what is left out
_LIST_SECONDS = 2e-4  # of a query, to score one of its lists
_SIZES = ((20_000, 1000), (20_000, 500), (10_000, 500), (10_000, 200), (5000, 100))


@dataclass(frozen=True)
class Rates:
    """What a small run on a sample of the items took, in seconds.

    Attributes
    ----------
    fits : dict from str to float
        A fit of each way to make codes, for each training row and bit.
    encode : float
        Encoding, for each item and bit.
    search : float
        Both kinds of search, for each query, item and bit.
    reference : float
        The float ranking, for each query and item.
    """

    fits: dict[str, float]
    encode: float
    search: float
    reference: float


@dataclass(frozen=True)
class Plan:
    """What runs.

    Attributes
    ----------
    coders : tuple of Coder
        The ways to make codes, in the order in which they run.
    n_bytes : tuple of int
        Lengths of the codes.
    pools : tuple of int
        Sizes of the re-ranking pools.
    n_training : int
        Items that are learned from.
    n_queries : int
        Queries that are asked.
    seconds : dict from str to float
        Estimates: of the float ranking ("reference") and of each way at all lengths.
    left_out : tuple of str
        Ways that the budget has no time for.
    """

    coders: tuple[Coder, ...]
    n_bytes: tuple[int, ...]
    pools: tuple[int, ...]
    n_training: int
    n_queries: int
    seconds: dict[str, float]
    left_out: tuple[str, ...] = ()

    @property
    def total_seconds(self) -> float:
        """The sum of all estimates."""
        return sum(self.seconds.values())

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "methods": [coder.name for coder in self.coders],
            "bytes": list(self.n_bytes),
            "pools": list(self.pools),
            "training_rows": self.n_training,
            "queries": self.n_queries,
            "estimated_seconds": {name: round(value, 2) for name, value in self.seconds.items()},
            "left_out": list(self.left_out),
        }


def measure_rates(
    task: Task, coders: Sequence[Coder], n_bytes: int, seed: int, n_threads: int | None
) -> Rates:
    """Fit, encode and search a sample of the items."""
    rng = np.random.default_rng((seed, 3))
    rows = np.sort(rng.permutation(len(task.items))[:_PROBE_ITEMS])
    items, queries = np.asarray(task.items[rows]), task.queries[:_PROBE_QUERIES]
    fits, hasher = {}, None
    for coder in coders:
        fitted, seconds = _small_fit(coder, n_bytes, items[:_PROBE_ROWS], seed, n_threads)
        fits[coder.name] = seconds / (len(items[:_PROBE_ROWS]) * 8 * n_bytes)
        hasher = hasher or fitted
    if hasher is None:
        raise InputError(
            f"no method can learn codes of {n_bytes} bytes from these items; take other bytes"
        )
    encode_seconds, search = _timed(lambda: build_search(hasher, items, task.similarity, n_threads))
    k = min(100, len(items))
    search_seconds, _ = _timed(
        lambda: [search.nearest(queries, kind, k, n_threads) for kind in QUERY_KINDS]
    )
    reference_seconds, _ = _timed(
        lambda: nearest_vectors(queries, items, k, task.similarity, n_threads=n_threads)
    )
    cells, n_bits = len(items) * len(queries), hasher.n_bits_
    return Rates(
        fits,
        encode_seconds / (len(items) * n_bits),
        search_seconds / (cells * n_bits),
        reference_seconds / cells,
    )


def make_plan(
    task: Task,
    coders: Sequence[Coder],
    n_bytes: Sequence[int],
    pools: Sequence[int],
    rates: Rates,
    budget_seconds: float | None,
) -> Plan:
    """The first of the sizes, from the largest, that fits into the budget; else the smallest."""
    plans = (_plan_of(task, coders, n_bytes, pools, rates, size) for size in _sizes(len(coders)))
    plan = next(plans)
    while budget_seconds is not None and _SAFETY * plan.total_seconds > budget_seconds:
        smaller = next(plans, None)
        if smaller is None:
            break
        plan = smaller
    return plan


def _plan_of(
    task: Task,
    coders: Sequence[Coder],
    n_bytes: Sequence[int],
    pools: Sequence[int],
    rates: Rates,
    size: tuple[int, int, int],
) -> Plan:
    n_training, n_queries, n_coders = size
    n_rows, n_asked = min(n_training, len(task.items)), min(n_queries, len(task.queries))
    chosen = tuple(coders[:n_coders])
    return Plan(
        chosen,
        tuple(n_bytes),
        tuple(pools),
        n_rows,
        n_asked,
        _estimate(task, chosen, n_bytes, pools, rates, n_rows, n_asked),
        tuple(coder.name for coder in coders[n_coders:]),
    )


def describe_plan(plan: Plan, task: Task, budget_seconds: float | None) -> list[str]:
    """The plan in a few lines, to be read before it runs."""
    items, width = task.items.shape
    lines = [
        f"{items:,} items of {width} numbers, {plan.n_queries} {task.asked_by} ask; learning from "
        f"{plan.n_training:,} items; bytes {', '.join(map(str, plan.n_bytes))}; pools "
        f"{', '.join(map(str, plan.pools)) or 'none'}"
    ]
    parts = [f"{name} {duration(seconds)}" for name, seconds in plan.seconds.items()]
    limit = "" if budget_seconds is None else f" of a budget of {duration(budget_seconds)}"
    lines.append(f"plan, about {duration(plan.total_seconds)}{limit}: {', '.join(parts)}")
    if plan.left_out:
        lines.append(f"left out for want of time: {', '.join(plan.left_out)}")
    return lines


def duration(seconds: float) -> str:
    """Seconds in words.

    >>> duration(0.2), duration(75), duration(7300)
    ('1 s', '75 s', '122 min')
    """
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{round(seconds / 60)} min"


def _sizes(n_coders: int) -> Iterator[tuple[int, int, int]]:
    """Training rows, queries and ways to make codes, from the largest to the smallest."""
    first, *smaller = _SIZES
    yield (*first, n_coders)
    for place, size in enumerate(smaller):
        fewest = max(1, min(n_coders, 3 - place))
        for n_kept in range(n_coders, fewest - 1, -1):
            yield (*size, n_kept)


def _estimate(
    task: Task,
    coders: Sequence[Coder],
    n_bytes: Sequence[int],
    pools: Sequence[int],
    rates: Rates,
    n_training: int,
    n_queries: int,
) -> dict[str, float]:
    n_items, all_bits = len(task.items), 8 * sum(n_bytes)
    asking = rates.search * n_items * n_queries * all_bits
    asking += _LIST_SECONDS * n_queries * (len(pools) + 1) * len(QUERY_KINDS) * len(n_bytes)
    shared = rates.encode * n_items * all_bits + asking
    seconds = {"reference": 2 * rates.reference * n_items * n_queries}
    for coder in coders:
        seconds[coder.name] = rates.fits[coder.name] * n_training * all_bits + shared
    return seconds


def _small_fit(
    coder: Coder, n_bytes: int, rows: np.ndarray, seed: int, n_threads: int | None
) -> tuple[Any, float]:
    """A fitted method and its seconds; None where the method cannot make such codes."""
    hasher = create_hasher(coder, n_bytes, seed, n_threads)
    started = time.perf_counter()
    try:
        hasher.fit(np.asarray(rows, np.float32))
    except InputError:
        return None, 0.0
    return hasher, time.perf_counter() - started


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result
