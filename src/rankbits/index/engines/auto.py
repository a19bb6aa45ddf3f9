"""The planner: scans, builds tables where they promise to pay, and uses whichever is faster.

Both give the same result. How far away the results of scans lie tells what tables would cost. Once
tables would have saved a share of the time that building takes, they are built beside the searches,
on a thread of their own. Trying them is paid from a credit, a small share of the time of all scans:
if they are of no use, searches are slower than scans alone by that share at most.

There is nothing to plan for real-valued queries: `rankbits.index.real_queries` scans all items,
whatever the kind, and neither builds tables nor counts towards building them.

Notation:
    job   searches that are alike: k or radius in powers of two, one query or many
    unit  seconds for a cost of 1; see `mih`
"""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankbits.index.engines import mih
from rankbits.index.engines.base import Engine, Request
from rankbits.index.engines.scan import Scan
from rankbits.index.results import Ragged, gathered
from rankbits.index.store.segment import Segment

_SHARE = 0.04  # of the time of scans that may go into trials
_MIN_ITEMS = 20_000  # below, a scan takes microseconds
_CHUNK = 16  # queries between two looks at the clock, or more where there are many
_BUILD_SECONDS = 5e-8  # of tables, for a byte of codes
_PROMISE = 0.1  # of the time to build that tables must have promised to save
_SKEW = 3.0  # buckets near a query are fuller than others; rather too high than too low
Job = tuple[int, int, int]


class Call(NamedTuple):
    """The arguments of one search."""

    queries: np.ndarray
    allowed: np.ndarray
    request: Request

    def job(self) -> Job:
        """What it has in common with searches that are alike."""
        reach = self.request.k.bit_length() if self.request.k else -1 - self.request.radius
        return reach, min(len(self.queries).bit_length(), 5), int(len(self.allowed) > 0)

    def some(self, rows: np.ndarray) -> "Call":
        """The same of some of the queries."""
        return self._replace(queries=self.queries[rows])


@dataclass
class Record:
    """Seconds a query of one job, by scan and by tables; None until measured."""

    scan: float | None = None
    tables: float | None = None
    n_trials: int = 0

    def prefers_tables(self) -> bool:
        """Whether tables were clearly faster."""
        return self.scan is not None and self.tables is not None and self.tables < 0.9 * self.scan


class Auto(Engine):
    """Scan and tables of one segment, and what each has taken so far."""

    name = "auto"
    summary = "scans, and turns to the buckets of mih where they prove faster"
    options_class = mih.MihOptions

    def __init__(self, segment: Segment, options: Any, n_threads: int) -> None:
        self._segment = segment
        self._options = options
        self._scan = Scan(segment, options, n_threads)
        self._mih: mih.Mih | None = None
        self._builder: threading.Thread | None = None
        self._promised = 0.0
        self._records: dict[Job, Record] = {}
        self._credit = 0.0
        self._unit = 5e-9

    @property
    def n_bytes(self) -> int:
        """Memory of the tables, if there are any."""
        return 0 if self._mih is None else self._mih.n_bytes

    def search(self, queries: np.ndarray, allowed: np.ndarray, request: Request) -> Ragged:
        """Exact, by whichever is faster for such a job."""
        if len(self._segment) < _MIN_ITEMS:
            return self._scan.search(queries, allowed, request)
        call, tables = Call(queries, allowed, request), self._mih
        record = self._records.setdefault(call.job(), Record())
        if tables is not None and not record.prefers_tables():
            self._try(tables, call, record)
        if tables is not None and record.prefers_tables():
            return self._by_tables(tables, call, record)
        return self._by_scan(call, record)

    def tune(self, queries: np.ndarray, allowed: np.ndarray, request: Request) -> None:
        """Build tables if memory allows, and measure both ways on these queries."""
        call = Call(queries, allowed, request)
        record = self._records.setdefault(call.job(), Record())
        self._by_scan(call, record)
        self.wait()
        if self._mih is None and self._may_build():
            self._mih = mih.Mih(self._segment, self._options, request.n_threads)
        if self._mih is not None:
            self._attempt(self._mih, call, record)

    def wait(self) -> None:
        """Until tables that are being built are there."""
        if self._builder is not None:
            self._builder.join()

    def _by_scan(self, call: Call, record: Record) -> Ragged:
        start = time.perf_counter()
        answer = self._scan.search(*call)
        seconds = time.perf_counter() - start
        record.scan = _smoothed(record.scan, seconds / len(call.queries))
        self._credit += _SHARE * seconds
        if self._builder is None and self._mih is None and len(call.allowed) == 0:
            self._consider(answer, call.request, seconds)
        return answer

    def _consider(self, answer: Ragged, request: Request, seconds: float) -> None:
        """Add up what tables would have saved of this scan, and begin to build them if enough."""
        farthest = answer.distances[answer.offsets[1:][answer.counts > 0] - 1]
        reach = farthest if request.k else np.full(len(answer.counts), request.radius)
        cost = mih.expected_cost(self._segment, self._options.copies, reach) / request.n_threads
        cost *= _SKEW * self._unit
        if cost < 0.5 * seconds and self._may_build():
            self._promised += seconds - cost
        if self._promised > _PROMISE * _BUILD_SECONDS * self._segment.planes.nbytes:
            self._builder = threading.Thread(target=self._build, name="rankbits tables")
            self._builder.start()

    def _build(self) -> None:
        with suppress(MemoryError):  # then scans go on
            self._mih = mih.Mih(self._segment, self._options, 1)

    def _by_tables(self, tables: mih.Mih, call: Call, record: Record) -> Ragged:
        """Chunk by chunk, as long as tables stay faster; what is given up or left is scanned."""
        n = len(call.queries)
        step = max(_CHUNK, n // 32)
        if n <= step:  # a lone query would feel what follows
            answer, unfinished = self._attempt(tables, call, record)
            if not len(unfinished):
                return answer
            parts, rest = [(np.arange(n), answer)], unfinished
        else:
            parts, rest = self._in_chunks(tables, call, record, step)
        if len(rest):
            parts.append((rest, self._by_scan(call.some(rest), record)))
        return gathered(parts, n)

    def _in_chunks(
        self, tables: mih.Mih, call: Call, record: Record, step: int
    ) -> tuple[list[tuple[np.ndarray, Ragged]], np.ndarray]:
        """Answers to chunks of queries, and the queries that are left to scan."""
        n, start = len(call.queries), 0
        parts, left = [], []
        while start < n and record.prefers_tables():
            chunk = np.arange(start, min(start + step, n))
            answer, unfinished = self._attempt(tables, call.some(chunk), record)
            parts.append((chunk, answer))
            left.append(chunk[unfinished])
            start += step
        return parts, np.concatenate([*left, np.arange(start, n)])

    def _attempt(self, tables: mih.Mih, call: Call, record: Record) -> tuple[Ragged, np.ndarray]:
        """Answers by tables within the budget of a scan, and the queries that need more than that.

        A query that is given up is charged the scan it needs.
        """
        scan, n_threads = record.scan or 0.0, call.request.n_threads
        start = time.perf_counter()
        attempt = tables.attempt(*call, budget=max(1, int(scan * n_threads / self._unit)))
        seconds = time.perf_counter() - start
        if attempt.cost:
            self._unit = _smoothed(self._unit, seconds * n_threads / attempt.cost)
        unfinished = np.flatnonzero(~attempt.is_finished)
        charged = (seconds + len(unfinished) * scan) / len(call.queries)
        record.tables = _smoothed(record.tables, charged)
        return attempt.answer, unfinished

    def _try(self, tables: mih.Mih, call: Call, record: Record) -> None:
        """Measure tables on as many queries as the credit pays for, if it pays for any.

        The credit counts what a scan of this call would earn. Trials that fail become rarer.
        """
        if record.scan is None:
            return
        n = len(call.queries)
        spare = self._credit + _SHARE * record.scan * n
        n_tried = int(min(spare / (record.scan * 2**record.n_trials), max(1, n / 50)))
        if n_tried < 1:
            return
        start = time.perf_counter()
        chosen = np.random.default_rng(record.n_trials).permutation(n)[:n_tried]
        record.tables = None
        self._attempt(tables, call.some(chosen), record)
        record.n_trials += 1
        self._credit -= time.perf_counter() - start

    def _may_build(self) -> bool:
        return mih.bytes_needed(self._segment, self._options.copies) <= mih.memory_limit()


def _smoothed(before: float | None, now: float) -> float:
    return now if before is None else 0.5 * before + 0.5 * now
