"""The planner: what it finds is what a scan finds, and what it tries is paid for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers, lists, sampled_from

from rankbits import BinaryCodes
from rankbits.index import HammingIndex
from rankbits.index.engines import Request, auto, mih
from rankbits.index.engines.auto import Auto
from rankbits.index.engines.mih import Attempt, Mih, MihOptions
from rankbits.index.engines.scan import Scan
from rankbits.index.results import nothing
from rankbits.index.store.segment import Segment

NO_FILTER = np.empty(0, np.uint64)


def request(k, n_bits=64):
    return Request(k, n_bits, False, 1, MihOptions())


class Clock:
    """Time that passes only when someone works."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


class Worker:
    """Stands for both engines: finds nothing, takes the seconds it is told."""

    def __init__(self, clock, scan_seconds, table_seconds, n_bytes=1):
        self.clock, self.scan, self.tables = clock, scan_seconds, table_seconds
        self.n_bytes = n_bytes

    def search(self, queries, allowed, request):
        self.clock.now += self.scan * len(queries)
        return nothing(len(queries))

    def attempt(self, queries, allowed, request, budget):
        unit = 5e-9  # what the planner begins with, so that budgets mean what they say
        cost = self.tables / unit
        is_finished = np.full(len(queries), cost <= budget)
        spent = min(cost, budget)
        self.clock.now += spent * unit * len(queries)
        return Attempt(nothing(len(queries)), is_finished, int(spent * len(queries)))


def planner_of(clock, monkeypatch, scan_seconds, table_seconds):
    monkeypatch.setattr(auto, "time", clock)
    monkeypatch.setattr(auto, "_MIN_ITEMS", 0)
    planner = Auto(Segment.of(_codes(64), range(64)), MihOptions(), 1)
    planner._scan = planner._mih = Worker(clock, scan_seconds, table_seconds)
    return planner


def _codes(n, n_bits=64, seed=0):
    rng = np.random.default_rng(seed)
    return BinaryCodes(rng.integers(0, 256, (n, n_bits // 8), dtype=np.uint8), n_bits)


@given(
    calls=lists(integers(1, 300), min_size=1, max_size=200),
    ratio=floats(0.001, 50),
    scan_seconds=sampled_from([1e-6, 1e-4, 1e-2]),
)
def test_a_planner_is_never_slower_than_its_scans_by_more_than_5_percent(
    calls, ratio, scan_seconds
):
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock = Clock()
        planner = planner_of(clock, monkeypatch, scan_seconds, ratio * scan_seconds)
        for n in calls:
            planner.search(np.zeros((n, 8), np.uint8), NO_FILTER, request(10))
    assert clock.now <= 1.05 * scan_seconds * sum(calls) + 1e-12


def test_tables_that_are_faster_are_found_and_kept(monkeypatch):
    clock = Clock()
    planner = planner_of(clock, monkeypatch, 1e-3, 1e-5)
    queries = np.zeros((100, 8), np.uint8)
    for _ in range(5):
        planner.search(queries, NO_FILTER, request(10))
    before = clock.now
    planner.search(queries, NO_FILTER, request(10))
    assert clock.now - before == pytest.approx(100 * 1e-5)


def test_one_query_at_a_time_tries_tables_once_scans_have_paid_for_it(monkeypatch):
    clock = Clock()
    planner = planner_of(clock, monkeypatch, 1e-3, 1e-5)
    for _ in range(60):
        planner.search(np.zeros((1, 8), np.uint8), NO_FILTER, request(10))
    before = clock.now
    planner.search(np.zeros((1, 8), np.uint8), NO_FILTER, request(10))
    assert clock.now - before == pytest.approx(1e-5)


def test_tables_that_become_slow_are_left_within_a_few_queries(monkeypatch):
    clock = Clock()
    planner = planner_of(clock, monkeypatch, 1e-3, 1e-5)
    queries = np.zeros((100, 8), np.uint8)
    for _ in range(5):
        planner.search(queries, NO_FILTER, request(10))
    planner._mih.tables = 1.0
    before = clock.now
    planner.search(queries, NO_FILTER, request(10))
    assert clock.now - before <= 1.2 * 100 * 1e-3


def clustered(n, n_queries, flip=0.03):
    rng = np.random.default_rng(0)
    centres = rng.random((40, 64)) < 0.5
    bits = centres[rng.integers(40, size=n + n_queries)]
    bits = bits ^ (rng.random(bits.shape) < flip)
    return BinaryCodes.from_bits(bits[:n]), BinaryCodes.from_bits(bits[n:])


def test_tables_are_built_beside_searches_once_they_promise_to_pay(monkeypatch):
    monkeypatch.setattr(auto, "_PROMISE", 1e-6)
    monkeypatch.setattr(auto, "_SKEW", 1e-6)
    codes, queries = clustered(30_000, 50)
    planner = Auto(Segment.of(codes, range(30_000)), MihOptions(), 1)
    planner.search(queries.packed, NO_FILTER, request(5))
    planner.wait()
    assert planner.n_bytes == mih.bytes_needed(planner._segment, True)


def test_no_tables_are_built_where_the_items_found_lie_too_far(monkeypatch):
    monkeypatch.setattr(auto, "_PROMISE", 0.0)
    planner = Auto(Segment.of(_codes(30_000), range(30_000)), MihOptions(), 1)
    for _ in range(3):
        planner.search(_codes(50, seed=1).packed, NO_FILTER, request(100))
    planner.wait()
    assert planner.n_bytes == 0


@pytest.mark.parametrize("copies", [True, False])
def test_what_tables_cost_is_expected_to_be_what_they_cost_where_buckets_are_equally_full(copies):
    segment = Segment.of(_codes(50_000), range(50_000))
    queries = _codes(200, seed=1)
    tables = Mih(segment, MihOptions(copies=copies), 1)
    attempt = tables.attempt(queries.packed, NO_FILTER, request(10), 2**63)
    reach = attempt.answer.distances[attempt.answer.offsets[1:] - 1]
    assert mih.expected_cost(segment, copies, reach) == pytest.approx(attempt.cost, rel=0.15)


def test_no_tables_are_built_beyond_the_memory_that_they_may_take(monkeypatch):
    monkeypatch.setenv("RANKBITS_MIH_BYTES", "1000")
    index = HammingIndex(64, "auto")
    index.add(_codes(30_000))
    index.tune(_codes(20, seed=1), 5)
    assert index.n_bytes == -(-30_000 // 64) * 64 * 8


@pytest.mark.parametrize("n_queries", [1, 7, 100])
@pytest.mark.parametrize("is_tuned", [False, True])
def test_auto_finds_what_a_scan_finds_whatever_it_has_learned(n_queries, is_tuned):
    codes, queries = _codes(25_000, 32), _codes(n_queries, 32, seed=2)
    tuned, scan = HammingIndex(32, "auto"), HammingIndex(32, "scan")
    for index in (tuned, scan):
        index.add(codes)
    if is_tuned:
        tuned.tune(queries, 3)
    for k in (3, 3, 3, 50, 3):
        for mine, theirs in zip(tuned.search(queries, k), scan.search(queries, k), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_small_parts_are_scanned():
    codes = _codes(500)
    segment = Segment.of(codes, range(500))
    mine = Auto(segment, MihOptions(), 1).search(codes.packed[:3], NO_FILTER, request(4))
    theirs = Scan(segment, None, 1).search(codes.packed[:3], NO_FILTER, request(4))
    np.testing.assert_array_equal(mine.ids, theirs.ids)
