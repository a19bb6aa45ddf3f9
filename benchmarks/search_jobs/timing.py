"""Codes to search, times in turns and tables of what came out."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

GIGA = 1e9
ITEMS_OF_A_CENTRE, FLIP = 1000, 0.05
_BLOCK = 1 << 17  # rows drawn at a time
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
_clock = time.perf_counter


def set_clock(name: str) -> None:
    """Measure seconds on the wall, or of the CPU, which other programs on the machine disturb less.

    CPU time counts all threads together, so it is for contenders on one thread.
    """
    global _clock
    _clock = CLOCKS[name]


def flips(rng: np.random.Generator, n: int, n_bits: int) -> np.ndarray:
    """Packed bits, each set with a chance of FLIP."""
    blocks = [
        np.packbits(rng.random((min(_BLOCK, n - row), n_bits), np.float32) < FLIP, axis=1)
        for row in range(0, n, _BLOCK)
    ]
    return np.concatenate(blocks)


def draw(kind: str, n: int, n_queries: int, n_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Packed queries and items."""
    rng, width = np.random.default_rng(0), n_bits // 8
    if kind == "uniform":
        both = [rng.integers(0, 256, (size, width), np.uint8) for size in (n_queries, n)]
    else:
        n_centres = max(1, n // ITEMS_OF_A_CENTRE)
        centres = rng.integers(0, 256, (n_centres, width), np.uint8)
        both = [
            centres[rng.integers(0, n_centres, size)] ^ flips(rng, size, n_bits)
            for size in (n_queries, n)
        ]
    return both[0], both[1]


@dataclass
class Timing:
    """Seconds a query: of the best round, and of all rounds together."""

    best: float
    mean: float


def in_turns(calls: dict[str, tuple[Callable[[], object], int]], rounds: int) -> dict[str, Timing]:
    """Times of named (call, number of queries), one after the other, several rounds."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, (call, n_queries) in calls.items():
            start = _clock()
            call()
            seconds[name].append((_clock() - start) / n_queries)
    return {name: Timing(min(times), sum(times) / rounds) for name, times in seconds.items()}


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    print(f"\n### {title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    sys.stdout.flush()


def ratio(other: Timing | None, ours: Timing) -> str:
    return f"{other.best / ours.best:.2f}×" if other else "–"


def rate(timing: Timing | None, n: int) -> str:
    return f"{n / timing.best / GIGA:.3f}" if timing else "–"
