"""The plan: what will run, how long it will take, and what is left out where time is short.

Seconds are estimated by two small fits of every way to make codes and a small search, all on a
sample of the items, and scaled: what two fits of different sizes differ in grows with rows and bits
and the rest does not, encoding and searches grow with items and bits.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rankbits.compress._candidates import Coder, create_hasher
from rankbits.compress._lessons import N_PARTS, teach
from rankbits.compress._searching import QUERY_KINDS, build_search, plan_of
from rankbits.compress._task import Task
from rankbits.errors import InputError
from rankbits.evaluation import nearest_vectors

_PROBE_ROWS, _PROBE_ITEMS, _PROBE_QUERIES = (400, 1200), 10_000, 100
_SAFETY = 1.25  # of estimates, where they decide what is left out
_LIST_SECONDS = 2e-4  # of a query, to score one of its lists
_SIZES = ((20_000, 1000), (20_000, 500), (10_000, 500), (10_000, 200), (5000, 100))

Size = tuple[int, int, tuple[str, ...]]  # training rows, queries, names of ways to make codes


@dataclass(frozen=True)
class Rates:
    """What a small run on a sample of the items took, in seconds.

    Attributes
    ----------
    fits : mapping from str to pair of float
        A fit of each way to make codes: whatever its size, and for each training row and bit.
    encode : float
        Encoding, for each item and bit.
    search : float
        Both kinds of search, for each query, item and bit.
    reference : float
        The float ranking, for each query and item.
    """

    fits: Mapping[str, Sequence[float]]
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
    def size(self) -> Size:
        """Numbers of training rows and of queries, and names of the ways to make codes."""
        return self.n_training, self.n_queries, tuple(coder.name for coder in self.coders)

    def within(self, seconds: float) -> "Plan":
        """The same with those ways, from the first on, that fit into so many seconds.

        At least the fastest stays.
        """
        left = seconds - self.seconds["reference"]
        chosen: list[Coder] = []
        for coder in self.coders:
            if self.seconds[coder.name] <= left:
                chosen.append(coder)
                left -= self.seconds[coder.name]
        if not chosen:
            chosen = [min(self.coders, key=lambda coder: self.seconds[coder.name])]
        names = [coder.name for coder in chosen]
        return replace(
            self,
            coders=tuple(chosen),
            seconds={name: self.seconds[name] for name in ("reference", *names)},
            left_out=tuple(coder.name for coder in self.coders if coder not in chosen),
        )

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
        fitted, fits[coder.name] = _small_fits(coder, n_bytes, task, rows, seed, n_threads)
        hasher = hasher or fitted
    if hasher is None:
        raise InputError(
            f"no method can learn codes of {n_bytes} bytes from these items; take other bytes"
        )
    encode_seconds, search = _timed(lambda: build_search(hasher, items, n_threads))
    k = min(100, len(items))
    plans = [plan_of(kind, None, task.similarity) for kind in search.hasher.query_kinds]
    search_seconds, _ = _timed(
        lambda: [search.search(queries, k, plan, n_threads=n_threads) for plan in plans]
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
    """The largest sizes at which all but slow ways fit into the budget, or at least the first way.

    Slow ways run if there is time left for them at these sizes. Where the first way, the most
    useful one, fits nowhere, the smallest sizes are taken with the ways that fit, and with the
    fastest if none does.
    """
    plans = [
        plan_of_size(task, coders, n_bytes, pools, rates, (*size, tuple(c.name for c in coders)))
        for size in _SIZES
    ]
    if budget_seconds is None:
        return plans[0]
    seconds = budget_seconds / _SAFETY
    fitting = [plan.within(seconds) for plan in plans]
    slow = {coder.name for coder in coders if coder.is_slow}
    whole = [plan for plan in fitting if slow.issuperset(plan.left_out)]
    useful = [plan for plan in fitting if coders[0] in plan.coders]
    return next(iter([*whole, *useful, fitting[-1]]))


def plan_of_size(
    task: Task,
    coders: Sequence[Coder],
    n_bytes: Sequence[int],
    pools: Sequence[int],
    rates: Rates,
    size: Size,
) -> Plan:
    """The plan with at most so many training rows and queries, and the ways of these names."""
    n_training, n_queries, names = size
    n_rows, n_asked = min(n_training, len(task.items)), min(n_queries, len(task.queries))
    chosen = tuple(coder for coder in coders if coder.name in names)
    return Plan(
        chosen,
        tuple(n_bytes),
        tuple(pools),
        n_rows,
        n_asked,
        _estimate(task, chosen, n_bytes, pools, rates, n_rows, n_asked),
        tuple(coder.name for coder in coders if coder.name not in names),
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
    encoding = rates.encode * n_items * all_bits
    seconds = {"reference": 2 * rates.reference * n_items * n_queries}
    for coder in coders:
        fixed, rate = rates.fits[coder.name]
        n_encoded = N_PARTS + 1 if coder.lesson == "judgements" else 1
        learning = fixed * len(n_bytes) + rate * n_training * all_bits
        seconds[coder.name] = learning + n_encoded * encoding + asking
    return seconds


def _small_fits(
    coder: Coder, n_bytes: int, task: Task, rows: np.ndarray, seed: int, n_threads: int | None
) -> tuple[Any, tuple[float, float]]:
    """A fitted method, the seconds that any fit takes and those for each row and bit.

    None for a method that cannot make such codes. Slow ones are fitted once, to save time: all of
    it counts as growing. Judgements are learned from several times.
    """
    times: list[float] = []
    sizes = [min(size, len(rows)) for size in _PROBE_ROWS]
    for size in sizes[:1] if coder.is_slow else sizes:
        hasher = create_hasher(coder, n_bytes, seed, n_threads)
        try:
            seconds, _ = _timed(partial(teach, hasher, coder, task, np.sort(rows[:size])))
        except InputError:
            return None, (0.0, 0.0)
        times.append(seconds)
    n_fits = N_PARTS + 1 if coder.lesson == "judgements" else 1
    if len(times) == 1:
        return hasher, (0.0, n_fits * times[0] / (sizes[0] * 8 * n_bytes))
    rate = max(0.0, times[1] - times[0]) / max(1, sizes[1] - sizes[0])
    return hasher, (max(0.0, times[0] - rate * sizes[0]), rate / (8 * n_bytes))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result
