"""Searches of one moment, joined into one scan.

A scan reads all codes once for many queries, so while one runs, whatever arrives waits and goes
into the next one together. The answer to a query depends on nothing but the query: items are
ordered by (distance, id) or (score, id), so other queries of a batch change nothing, and a larger k
only makes the list longer.

A scan takes some milliseconds, and so does each piece of any other work that a request can make
long. Between pieces others have their turn, and a request that was given up ends.
"""

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankbits.service._metrics import Metrics

Tables = tuple[np.ndarray, np.ndarray]  # values and ids of shape (queries, k)


class ScanRequest(NamedTuple):
    """A search that may be joined with others of its kind.

    Attributes
    ----------
    kind : "bits" or "weights"
    rows : packed codes, or weights
    k : how many items each query asks for
    """

    kind: str
    rows: np.ndarray
    k: int

    def key(self) -> tuple[str, int]:
        """What scans that are joined have in common: k within a factor of two."""
        return self.kind, self.k.bit_length()

    def pieces(self, n_queries: int) -> "list[ScanRequest]":
        """The same in scans of so many queries."""
        starts = range(0, max(1, len(self.rows)), n_queries)
        return [self._replace(rows=self.rows[start : start + n_queries]) for start in starts]


@dataclass(eq=False)
class _Waiting:
    scan: ScanRequest
    most_queries: int
    future: "asyncio.Future[Tables]"


class Batcher:
    """Runs scans in one thread, changes in another, and other work beside them.

    Parameters
    ----------
    search : function of (kind, rows, k) that returns (values, ids)
    metrics : Metrics
    most_queries : function of a ScanRequest that returns how many queries one scan may have
    """

    def __init__(
        self,
        search: Callable[[str, np.ndarray, int], Tables],
        metrics: Metrics,
        most_queries: Callable[[ScanRequest], int],
    ) -> None:
        self._search, self._metrics, self._most = search, metrics, most_queries
        self._waiting: list[_Waiting] = []
        self._drain: asyncio.Task[None] | None = None
        self._looks: dict[Hashable, asyncio.Future[Any]] = {}
        self._scans = ThreadPoolExecutor(1, "rankbits-scan")
        self._others = ThreadPoolExecutor(2, "rankbits-work")
        self._aside = ThreadPoolExecutor(1, "rankbits-aside")
        self._status = ThreadPoolExecutor(1, "rankbits-status")
        self._writes = ThreadPoolExecutor(1, "rankbits-write")

    async def scan(self, scan: ScanRequest) -> Tables:
        """The answer to a scan, which may be found together with others, or in pieces."""
        most = self._most(scan)
        if len(scan.rows) <= most:
            return await self._answer(scan, most)
        answers = [await self._answer(piece, most) for piece in scan.pieces(most)]
        values, ids = zip(*answers, strict=True)
        return np.concatenate(values), np.concatenate(ids)

    async def _answer(self, scan: ScanRequest, most_queries: int) -> Tables:
        waiting = _Waiting(scan, most_queries, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._drain is None or self._drain.done():
            self._drain = asyncio.create_task(self._run_all())
        return await waiting.future

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of other work that takes a moment, off the event loop."""
        return await self._in(self._others, function, *arguments)

    async def run_aside(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a piece of long work, behind the pieces that wait already."""
        return await self._in(self._aside, function, *arguments)

    async def look(self, function: Callable[[], Any]) -> Any:
        """The result of a look at the state, whatever else runs; who comes meanwhile shares it."""
        look = self._looks.get(function)
        if look is None or look.done():
            look = self._looks[function] = self._in(self._status, function)
        return await asyncio.shield(look)

    async def write(self, change: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a change, one after the other; it happens even if nobody waits any more."""
        return await self._in(self._writes, change, *arguments)

    @staticmethod
    def _in(
        executor: ThreadPoolExecutor, function: Callable[..., Any], *arguments: Any
    ) -> "asyncio.Future[Any]":
        return asyncio.get_running_loop().run_in_executor(executor, function, *arguments)

    def close(self) -> None:
        """Wait for what is running; what waits is given up."""
        for waiting in self._waiting:
            waiting.future.cancel()
        executors = (self._scans, self._others, self._aside, self._status, self._writes)
        for executor in executors:
            executor.shutdown(wait=True, cancel_futures=True)

    async def _run_all(self) -> None:
        await asyncio.sleep(0)  # requests that the loop is just reading come along
        while self._waiting:
            batch = self._next_batch()
            if not batch:
                continue
            scans = [waiting.scan for waiting in batch]
            loop = asyncio.get_running_loop()
            try:
                answers = await loop.run_in_executor(self._scans, self._joined, scans)
            except Exception as error:  # noqa: BLE001 - whoever waits for the answer gets it
                for waiting in batch:
                    if not waiting.future.done():
                        waiting.future.set_exception(error)
                continue
            for waiting, answer in zip(batch, answers, strict=True):
                if not waiting.future.done():
                    waiting.future.set_result(answer)

    def _next_batch(self) -> list[_Waiting]:
        """The scan that waits longest, with all of its kind as far as they fit."""
        self._waiting = [waiting for waiting in self._waiting if not waiting.future.done()]
        batch: list[_Waiting] = []
        rest: list[_Waiting] = []
        n_queries = 0
        for waiting in self._waiting:
            n = len(waiting.scan.rows)
            is_alike = not batch or waiting.scan.key() == batch[0].scan.key()
            if is_alike and (not batch or n_queries + n <= batch[0].most_queries):
                batch.append(waiting)
                n_queries += n
            else:
                rest.append(waiting)
        self._waiting = rest
        return batch

    def _joined(self, scans: list[ScanRequest]) -> list[Tables]:
        """The answers to scans that are alike, by one search."""
        started = time.perf_counter()
        kind, k = scans[0].kind, max(scan.k for scan in scans)
        rows = scans[0].rows if len(scans) == 1 else np.concatenate([scan.rows for scan in scans])
        values, ids = self._search(kind, rows, k)
        self._metrics.observe("rankbits_scan_seconds", time.perf_counter() - started)
        self._metrics.observe("rankbits_scan_queries", len(rows))
        answers, start = [], 0
        for scan in scans:
            part = slice(start, start + len(scan.rows)), slice(0, scan.k)
            answers.append((values[part], ids[part]))
            start += len(scan.rows)
        return answers
