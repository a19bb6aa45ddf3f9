"""The planner: scans, tries multi-index hashing as far as it can afford to, keeps what is faster.

Whatever it picks finds the same. Every scan earns a credit, a small share of its time; building
tables and trying them is paid from the credit, so that a collection for which tables are of no use
is searched at most that share slower than by scanning alone. `tune` spends without waiting.

Notation:
    job   searches that are alike: k or radius in powers of two, one query or many
    unit  seconds for a cost of 1; see `_mih`
"""

import time
from dataclasses import dataclass

import numpy as np

from rankbits.index import _mih
from rankbits.index._part import Scan, Wanted
from rankbits.index._results import Ragged
from rankbits.index._segment import Segment

_SHARE = 0.04  # of the time of scans that may go into trials
_MIN_ITEMS = 20_000  # below, a scan takes microseconds
_CHUNK = 16  # queries between two looks at the clock, or more where there are many
_BUILD_SECONDS = 5e-8  # of tables, for a byte of codes
Job = tuple[int, int, int]


@dataclass
class Record:
    """Seconds a query of one job, by scan and by tables; None until measured."""

    scan: float | None = None
    tables: float | None = None
    n_trials: int = 0

    def prefers_tables(self) -> bool:
        """Whether tables were clearly faster."""
        return self.scan is not None and self.tables is not None and self.tables < 0.9 * self.scan


class Auto:
    """Scan and tables of one segment, and what each has taken so far."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._scan = Scan(segment)
        self._mih: _mih.Mih | None = None
        self._records: dict[Job, Record] = {}
        self._credit = 0.0
        self._unit = 5e-9

    @property
    def n_bytes(self) -> int:
        """Memory of the tables, if there are any."""
        return 0 if self._mih is None else self._mih.n_bytes

    def search(self, queries: np.ndarray, allowed: np.ndarray, wanted: Wanted) -> Ragged:
        """Exact, by whichever is faster for such a job."""
        if len(self._segment) < _MIN_ITEMS:
            return self._scan.search(queries, allowed, wanted)
        record = self._records.setdefault(_job_of(queries, allowed, wanted), Record())
        if not record.prefers_tables():
            self._try(queries, allowed, wanted, record)
        if record.prefers_tables():
            return self._by_tables(queries, allowed, wanted, record)
        return self._by_scan(queries, allowed, wanted, record)

    def tune(self, queries: np.ndarray, allowed: np.ndarray, wanted: Wanted) -> None:
        """Build tables if memory allows, and measure both ways on these queries."""
        record = self._records.setdefault(_job_of(queries, allowed, wanted), Record())
        self._by_scan(queries, allowed, wanted, record)
        if self._may_build():
            self._attempt(queries, allowed, wanted, record)

    def _by_scan(
        self, queries: np.ndarray, allowed: np.ndarray, wanted: Wanted, record: Record
    ) -> Ragged:
        start = time.perf_counter()
        found = self._scan.search(queries, allowed, wanted)
        taken = time.perf_counter() - start
        record.scan = _smoothed(record.scan, taken / len(queries))
        self._credit += _SHARE * taken
        return found

    def _by_tables(
        self, queries: np.ndarray, allowed: np.ndarray, wanted: Wanted, record: Record
    ) -> Ragged:
        """Chunk by chunk, as long as tables stay faster; what is given up or left is scanned."""
        parts, left, start, step = [], [], 0, max(_CHUNK, len(queries) // 32)
        while start < len(queries) and record.prefers_tables():
            chunk = np.arange(start, min(start + step, len(queries)))
            found, unfinished = self._attempt(queries[chunk], allowed, wanted, record)
            parts.append((chunk, found))
            left.append(chunk[unfinished])
            start += step
        rest = np.concatenate([*left, np.arange(start, len(queries))])
        if len(rest):
            parts.append((rest, self._by_scan(queries[rest], allowed, wanted, record)))
        return _gathered(parts, len(queries))

    def _attempt(
        self, queries: np.ndarray, allowed: np.ndarray, wanted: Wanted, record: Record
    ) -> tuple[Ragged, np.ndarray]:
        """Tables with the budget of a scan; a query given up is charged the scan it needs."""
        tables, scan = self._tables(wanted.n_threads), record.scan or 0.0
        budget = max(1, int(scan * wanted.n_threads / self._unit))
        start = time.perf_counter()
        attempt = tables.attempt(queries, allowed, wanted, budget)
        taken = time.perf_counter() - start
        if attempt.cost:
            self._unit = _smoothed(self._unit, taken * wanted.n_threads / attempt.cost)
        unfinished = ~attempt.is_finished
        charged = taken / len(queries) + float(unfinished.mean()) * scan
        record.tables = _smoothed(record.tables, charged)
        return attempt.found, unfinished

    def _try(
        self, queries: np.ndarray, allowed: np.ndarray, wanted: Wanted, record: Record
    ) -> None:
        """Measure tables on as many queries as the credit pays for, if it pays for any.

        The credit counts what a scan of this call would earn. Trials that fail become rarer.
        """
        if record.scan is None or not self._may_build():
            return
        build = 0.0 if self._mih else _BUILD_SECONDS * self._segment.planes.nbytes
        spare = self._credit + _SHARE * record.scan * len(queries) - build
        n_tried = int(min(spare / (record.scan * 2**record.n_trials), max(1, len(queries) / 50)))
        if n_tried < 1:
            return
        start = time.perf_counter()
        chosen = np.random.default_rng(record.n_trials).permutation(len(queries))[:n_tried]
        self._tables(wanted.n_threads)
        record.tables = None
        self._attempt(queries[chosen], allowed, wanted, record)
        record.n_trials += 1
        self._credit -= time.perf_counter() - start

    def _may_build(self) -> bool:
        return bool(self._mih or _mih.bytes_needed(self._segment) <= _mih.memory_limit())

    def _tables(self, n_threads: int) -> _mih.Mih:
        if self._mih is None:
            self._mih = _mih.build(self._segment, n_threads)
        return self._mih


def _job_of(queries: np.ndarray, allowed: np.ndarray, wanted: Wanted) -> Job:
    reach = wanted.k.bit_length() if wanted.k else -1 - wanted.radius
    return reach, min(len(queries).bit_length(), 5), int(len(allowed) > 0)


def _smoothed(before: float | None, now: float) -> float:
    return now if before is None else 0.5 * before + 0.5 * now


def _gathered(parts: list[tuple[np.ndarray, Ragged]], n_queries: int) -> Ragged:
    """Answers to some of the queries each, as one; the last answer to a query counts."""
    counts = np.zeros(n_queries, np.int64)
    for queries, found in parts:
        counts[queries] = found.counts
    offsets = np.concatenate([[0], np.cumsum(counts)])
    distances, ids = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int64)
    for queries, found in parts:
        places = np.repeat(offsets[queries] - found.offsets[:-1], found.counts)
        places += np.arange(len(found.ids))
        distances[places], ids[places] = found.distances, found.ids
    return Ragged(offsets, distances, ids)
