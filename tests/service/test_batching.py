"""Scans that wait together are made together; one that fails or leaves harms nobody else."""

import asyncio
import threading

import numpy as np
import pytest

from rankbits.service._batching import Batcher, ScanRequest
from rankbits.service._metrics import Metrics


class Search:
    """Answers row r with ids r, r + 1, ..., remembers its calls, and waits at its gate."""

    def __init__(self):
        self.calls, self.gate, self.error = [], threading.Event(), None

    def __call__(self, kind, rows, k):
        self.calls.append((kind, len(rows), k))
        assert self.gate.wait(10)
        if self.error is not None:
            raise self.error
        ids = rows[:, :1].astype(np.int64) + np.arange(k)
        return ids * 10, ids


def rows(*values):
    return np.array(values, np.uint8)[:, None]


async def started(batcher, scans):
    """Tasks of scans, the first of which is already running."""
    tasks = [asyncio.create_task(batcher.scan(scans[0]))]
    while not batcher._search.calls:
        await asyncio.sleep(0.001)
    tasks += [asyncio.create_task(batcher.scan(scan)) for scan in scans[1:]]
    await asyncio.sleep(0.01)
    return tasks


def run(scans, most=100, prepare=lambda search, tasks: None):
    async def main():
        search = Search()
        batcher = Batcher(search, Metrics(), lambda scan: most)
        tasks = await started(batcher, scans)
        prepare(search, tasks)
        search.gate.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        batcher.close()
        return search.calls, answers

    return asyncio.run(main())


def test_what_waits_goes_into_one_search_and_each_gets_its_own():
    scans = [ScanRequest("bits", rows(1), 4)]
    scans += [ScanRequest("bits", rows(10 * i, 10 * i + 1), 4 + i % 3) for i in range(1, 6)]
    calls, answers = run(scans)
    assert calls == [("bits", 1, 4), ("bits", 10, 6)]
    for scan, (values, ids) in zip(scans, answers, strict=True):
        expected = scan.rows.astype(int) + np.arange(scan.k)
        assert np.array_equal(ids, expected)
        assert np.array_equal(values, 10 * expected)


def test_kinds_and_sizes_of_k_are_kept_apart_and_batches_are_bounded():
    scans = [
        ScanRequest("bits", rows(0), 1),
        ScanRequest("bits", rows(1, 2), 10),
        ScanRequest("real", rows(3), 10),
    ]
    scans += [
        ScanRequest("bits", rows(4, 5), 9),
        ScanRequest("bits", rows(6), 100),
        ScanRequest("bits", rows(7), 8),
    ]
    calls, answers = run(scans, most=4)
    expected = [("bits", 1, 1), ("bits", 4, 10), ("real", 1, 10), ("bits", 1, 100), ("bits", 1, 8)]
    assert calls == expected
    assert [ids[0, 0] for _, ids in answers] == [0, 1, 3, 4, 6, 7]


def test_a_scan_larger_than_a_batch_is_made_in_pieces_between_which_others_have_their_turn():
    scans = [ScanRequest("bits", rows(0), 1), ScanRequest("bits", rows(*range(9)), 1)]
    calls, answers = run([*scans, ScanRequest("real", rows(7), 1)], most=4)
    kinds = [("bits", 1, 1), ("bits", 4, 1), ("real", 1, 1), ("bits", 4, 1), ("bits", 1, 1)]
    assert calls == kinds
    assert answers[1][1].tolist() == [[item] for item in range(9)]


def test_an_error_reaches_those_who_were_searched_together():
    def fail(search, tasks):
        search.error = RuntimeError("the disk is gone")

    _, answers = run(
        [ScanRequest("bits", rows(0), 1), ScanRequest("bits", rows(1), 1)], prepare=fail
    )
    assert [str(answer) for answer in answers] == ["the disk is gone"] * 2


def test_who_leaves_is_not_searched_for():
    calls, answers = run(
        [
            ScanRequest("bits", rows(0), 1),
            ScanRequest("bits", rows(1), 1),
            ScanRequest("bits", rows(2, 3), 1),
        ],
        prepare=lambda search, tasks: tasks[1].cancel(),
    )
    assert calls == [("bits", 1, 1), ("bits", 2, 1)]
    assert isinstance(answers[1], asyncio.CancelledError)
    assert answers[2][1].tolist() == [[2], [3]]


def test_a_batcher_that_is_closed_gives_up_what_waits():
    async def main():
        search = Search()
        batcher = Batcher(search, Metrics(), lambda scan: 10)
        tasks = await started(
            batcher, [ScanRequest("bits", rows(0), 1), ScanRequest("real", rows(1), 1)]
        )
        search.gate.set()
        batcher.close()
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers = asyncio.run(main())
    assert isinstance(answers[1], asyncio.CancelledError)


@pytest.mark.parametrize("n", [1, 3])
def test_work_of_other_kinds_has_threads_of_its_own(n):
    async def main():
        batcher = Batcher(Search(), Metrics(), lambda scan: 10)
        names = [await batcher.run(lambda: threading.current_thread().name) for _ in range(n)]
        names.append(await batcher.write(lambda: threading.current_thread().name))
        batcher.close()
        return names

    names = asyncio.run(main())
    assert all(name.startswith("rankbits-work") for name in names[:-1])
    assert names[-1].startswith("rankbits-write")
