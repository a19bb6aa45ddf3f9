"""Multi-index hashing: exact search that visits only buckets near the query.

It is fastest where the k-th neighbor lies within a few bits of the query, and slower than a scan
where it does not. So a search may set a budget, and queries that would cost more are given up.

Notation:
    cost  work of a query: items compared, and for each bucket visited as much as 24 items
"""

import math
import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankbits import _check, _native
from rankbits.errors import InputError
from rankbits.index.engines.base import QUERIES_A_THREAD, Engine, Options, Request
from rankbits.index.results import Ragged
from rankbits.index.store.segment import Segment

PROBE_COST = 24  # of a bucket, as in the native code
_NO_BUDGET = 2**63
_SHARE = 0.5  # of the machine's memory that tables may take


class Attempt(NamedTuple):
    """The answer of a search within a budget: nothing for queries that are not finished."""

    answer: Ragged
    is_finished: np.ndarray
    cost: int


@dataclass(frozen=True)
class MihOptions(Options):
    """Whether each table has a copy of the codes, which is faster, or one serves all tables."""

    copies: bool = True

    def __post_init__(self) -> None:
        _check.flag("copies", self.copies)


class Mih(Engine):
    """Tables of substrings over one segment."""

    name = "mih"
    summary = "visits buckets near the query, for as long as something nearer may be left"
    options_class = MihOptions

    def __init__(self, segment: Segment, options: Any, n_threads: int) -> None:
        needed, limit = bytes_needed(segment, options.copies), memory_limit()
        if needed > limit:
            raise InputError(
                f"kind 'mih' needs {needed / 2**20:,.0f} MiB of tables for {len(segment)} codes of "
                f"{segment.n_bits} bits, more than the {limit / 2**20:,.0f} MiB it may take; use "
                "kind 'scan' or 'auto', or raise RANKBITS_MIH_BYTES"
            )
        self._n_bytes = needed
        self._n_bits = segment.n_bits
        self._tables = _native.Mih(
            segment.planes, len(segment), segment.n_bits, bool(options.copies), n_threads=n_threads
        )

    @classmethod
    def bytes_needed(cls, segment: Segment, options: Any) -> int:
        """Memory of the tables of a segment."""
        return bytes_needed(segment, options.copies)

    @property
    def n_bytes(self) -> int:
        """Memory of the tables."""
        return self._n_bytes

    def search(self, queries: np.ndarray, allowed: np.ndarray, request: Request) -> Ragged:
        """Exact, whatever it costs."""
        return self.attempt(queries, allowed, request, _NO_BUDGET).answer

    def attempt(
        self, queries: np.ndarray, allowed: np.ndarray, request: Request, budget: int
    ) -> Attempt:
        """Exact for the queries whose cost stays within the budget."""
        answer, is_finished, cost = self._tables.search(
            queries,
            self._n_bits,
            allowed,
            request.k,
            request.radius,
            request.is_complete,
            budget,
            n_threads=min(request.n_threads, 1 + len(queries) // QUERIES_A_THREAD),
        )
        return Attempt(Ragged(*answer), is_finished.astype(bool), cost)


def bytes_needed(segment: Segment, copies: bool) -> int:
    """Memory of the tables of a segment."""
    return int(_native.Mih.bytes_needed(len(segment), segment.planes.shape[1], bool(copies)))


def expected_cost(segment: Segment, copies: bool, reach: np.ndarray) -> float:
    """Cost of queries whose last item lies at distance `reach`, if buckets were equally full."""
    n_tables, n_bits = _native.Mih.cut(len(segment), segment.planes.shape[1], bool(copies))
    bucket = PROBE_COST + len(segment) / 2**n_bits
    counts = np.bincount(reach, minlength=1)
    steps = np.arange(len(counts))  # at step m r + j, table j is looked into at radius r
    probes = np.array([math.comb(n_bits, step // n_tables) for step in steps], float)
    return float(counts @ (bucket * np.cumsum(probes)))


def memory_limit() -> int:
    """Bytes that tables may take: RANKBITS_MIH_BYTES, or half of the machine's memory."""
    setting = os.environ.get("RANKBITS_MIH_BYTES", "")
    if not setting:
        return int(_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    if not setting.isdecimal():
        raise InputError(f"RANKBITS_MIH_BYTES must be a number of bytes, got {setting!r}")
    return int(setting)
