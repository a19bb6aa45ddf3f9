"""Multi-index hashing: exact search that visits only buckets near the query.

Fast where the items wanted lie within a few bits of the query; slower than a scan where they do
not, so a search may set a budget, and queries that would cost more are given up.

Notation:
    cost  work of a query: items compared, and for each bucket visited as much as 24 items
"""

import math
import os
from typing import NamedTuple

import numpy as np

from rankbits import _native
from rankbits.errors import InputError
from rankbits.index._part import QUERIES_A_THREAD, Wanted
from rankbits.index._results import Ragged
from rankbits.index._segment import Segment

PROBE_COST = 24  # of a bucket, as in the native code
_NO_BUDGET = 2**63
_SHARE = 0.5  # of the machine's memory that tables may take


class Attempt(NamedTuple):
    """What a search within a budget found: nothing for queries that are not finished."""

    found: Ragged
    is_finished: np.ndarray
    cost: int


class Mih:
    """Tables of substrings over one segment, with a copy of the codes in each or without.

    Without copies they take less than a third of the memory, and searches several times as long:
    each item compared is then read from as many cache lines as its code has bytes.
    """

    def __init__(self, segment: Segment, n_threads: int, copies: bool = True) -> None:
        self.n_bytes = bytes_needed(segment, copies)
        self._n_bits = segment.n_bits
        self._tables = _native.Mih(
            segment.planes, len(segment), segment.n_bits, copies, n_threads=n_threads
        )

    def search(self, queries: np.ndarray, allowed: np.ndarray, wanted: Wanted) -> Ragged:
        """Exact, whatever it costs."""
        return self.attempt(queries, allowed, wanted, _NO_BUDGET).found

    def attempt(
        self, queries: np.ndarray, allowed: np.ndarray, wanted: Wanted, budget: int
    ) -> Attempt:
        """Exact for the queries whose cost stays within the budget."""
        found, is_finished, cost = self._tables.search(
            queries,
            self._n_bits,
            allowed,
            wanted.k,
            wanted.radius,
            wanted.is_complete,
            budget,
            n_threads=min(wanted.n_threads, 1 + len(queries) // QUERIES_A_THREAD),
        )
        return Attempt(Ragged(*found), is_finished.astype(bool), cost)


def bytes_needed(segment: Segment, copies: bool = True) -> int:
    """Memory of the tables of a segment."""
    return int(_native.Mih.bytes_needed(len(segment), segment.planes.shape[1], copies))


def expected_cost(segment: Segment, reach: np.ndarray) -> float:
    """Cost of queries whose last item lies at distance `reach`, if buckets were equally full."""
    width = segment.planes.shape[1]
    n_tables = int(_native.Mih.n_tables(len(segment), width))
    n_bits = -(-8 * width // n_tables)
    bucket = PROBE_COST + len(segment) / 2**n_bits
    counts = np.bincount(reach, minlength=1)
    steps = np.arange(len(counts))  # at step m r + j, table j is looked into at radius r
    probes = np.array([math.comb(n_bits, step // n_tables) for step in steps], float)
    return float(counts @ (bucket * np.cumsum(probes)))


def memory_limit() -> int:
    """Bytes that tables may take: RANKBITS_MIH_BYTES, or half of the machine's memory."""
    asked = os.environ.get("RANKBITS_MIH_BYTES", "")
    if not asked:
        return int(_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    if not asked.isdecimal():
        raise InputError(f"RANKBITS_MIH_BYTES must be a number of bytes, got {asked!r}")
    return int(asked)


def build(segment: Segment, n_threads: int) -> Mih:
    """Tables of a segment, unless they would take too much memory."""
    needed, limit = bytes_needed(segment), memory_limit()
    if needed > limit:
        raise InputError(
            f"kind 'mih' needs {needed / 2**20:,.0f} MiB of tables for {len(segment)} codes of "
            f"{segment.n_bits} bits, more than the {limit / 2**20:,.0f} MiB it may take; use kind "
            "'scan' or 'auto', or raise RANKBITS_MIH_BYTES"
        )
    return Mih(segment, n_threads)
