"""Multi-index hashing: exact where it finishes, and honest where it does not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import booleans, integers, sampled_from

from rankbits import BinaryCodes, _native
from rankbits.errors import InputError
from rankbits.index import HammingIndex
from rankbits.index.engines import Request, mih
from rankbits.index.engines.mih import Mih, MihOptions
from rankbits.index.store.segment import Segment
from rankbits.index.store.words import words_of

NO_FILTER = np.empty(0, np.uint64)


def clustered(n, n_bits, seed, n_centres=5, flip=0.1):
    rng = np.random.default_rng(seed)
    centres = rng.random((n_centres, n_bits)) < 0.5
    bits = centres[rng.integers(n_centres, size=n)] ^ (rng.random((n, n_bits)) < flip)
    return BinaryCodes.from_bits(bits)


@settings(deadline=None)
@given(
    n=integers(1, 400),
    n_bits=sampled_from([1, 8, 12, 31, 32, 48, 64, 65, 100, 128, 200]),
    k=integers(0, 50),
    radius=integers(0, 40),
    is_complete=booleans(),
    seed=integers(0, 2**16),
    level=sampled_from(_native.dispatch_levels()),
)
def test_what_mih_finds_is_what_brute_force_finds(n, n_bits, k, radius, is_complete, seed, level):
    items, queries = clustered(n, n_bits, seed), clustered(3, n_bits, seed + 1)
    reach = min(radius, n_bits) if k == 0 else n_bits
    request = Request(k, reach, is_complete, 2, MihOptions())
    with _native.dispatched(level):
        found = Mih(Segment.of(items, range(n)), MihOptions(), 2).search(
            queries.packed, NO_FILTER, request
        )
    for q in range(3):
        distances = (queries.bits()[q] != items.bits()).sum(axis=1)
        order = np.argsort(distances, kind="stable")
        if k == 0:
            order = order[distances[order] <= reach]
        elif is_complete:
            order = order[distances[order] <= np.sort(distances)[min(k, n) - 1]]
        else:
            order = order[:k]
        mine = slice(found.offsets[q], found.offsets[q + 1])
        np.testing.assert_array_equal(found.ids[mine], order)
        np.testing.assert_array_equal(found.distances[mine], distances[order])


@settings(deadline=None)
@given(budget=integers(0, 20_000), seed=integers(0, 2**16))
def test_a_query_that_finishes_within_its_budget_is_right_and_costs_no_more(budget, seed):
    items, queries = clustered(3000, 48, seed), clustered(8, 48, seed + 1)
    tables, request = (
        Mih(Segment.of(items, range(3000)), MihOptions(), 1),
        Request(20, 48, False, 1, MihOptions()),
    )
    attempt = tables.attempt(queries.packed, NO_FILTER, request, budget)
    whole = tables.search(queries.packed, NO_FILTER, request)
    kept = np.repeat(attempt.is_finished, whole.counts)
    np.testing.assert_array_equal(attempt.answer.ids, whole.ids[kept])
    assert attempt.answer.counts[~attempt.is_finished].sum() == 0
    assert attempt.cost <= 8 * budget + 8 * (3000 + 24)  # the bucket that broke a budget counts


def test_a_budget_of_nothing_finishes_nothing_and_none_at_all_finishes_everything():
    items = clustered(3000, 64, 0)
    tables = Mih(Segment.of(items, range(3000)), MihOptions(), 1)
    request = Request(10, 64, False, 1, MihOptions())
    assert not tables.attempt(items.packed[:5], NO_FILTER, request, 0).is_finished.any()
    assert tables.attempt(items.packed[:5], NO_FILTER, request, 2**63).is_finished.all()


def test_a_filter_is_exact_also_when_it_leaves_nothing_near():
    items = clustered(3000, 64, 3)
    queries = items[:4]
    distances = (queries.bits()[:, None] != items.bits()).sum(axis=2)
    is_allowed = distances.min(axis=0) > 20
    tables = Mih(Segment.of(items, range(3000)), MihOptions(), 1)
    found = tables.search(
        queries.packed, words_of(is_allowed), Request(7, 64, False, 1, MihOptions())
    )
    for q in range(4):
        rows = np.flatnonzero(is_allowed)
        order = rows[np.argsort(distances[q, rows], kind="stable")[:7]]
        np.testing.assert_array_equal(found.ids[found.offsets[q] : found.offsets[q + 1]], order)


def test_tables_are_refused_before_they_take_memory(monkeypatch):
    monkeypatch.setenv("RANKBITS_MIH_BYTES", "100000")
    index = HammingIndex(64, "mih")
    index.add(clustered(5000, 64, 0))
    with pytest.raises(InputError, match=r"kind 'mih' needs .* MiB of tables for 5000 codes"):
        index.search(clustered(1, 64, 1), 3)


def test_the_memory_that_tables_need_is_what_they_are_said_to_need():
    segment = Segment.of(clustered(5000, 64, 0), range(5000))
    n_tables, buckets = 6, 2**11  # 5000 items are 2**12.3: six substrings of at most 11 bits
    codes, rows = 5000 * 8, 5000 * 13 // 8  # a row has 13 bits
    starts = (buckets + 1) * 4
    margins = 16 + 8  # words are read whole: behind the last, and for codes before the first
    assert mih.bytes_needed(segment, True) == n_tables * (codes + rows + starts + margins)


@pytest.mark.parametrize("value", ["many", "-1", "1e9"])
def test_a_limit_that_is_no_number_of_bytes_is_refused(monkeypatch, value):
    monkeypatch.setenv("RANKBITS_MIH_BYTES", value)
    with pytest.raises(InputError, match="RANKBITS_MIH_BYTES must be a number of bytes"):
        mih.memory_limit()
