"""Tables with one copy of the codes for all of them: they find the same, in less memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import booleans, integers, sampled_from

from rankbits import BinaryCodes, _native
from rankbits.index.engines import Request
from rankbits.index.engines.mih import Mih, MihOptions
from rankbits.index.engines.scan import Scan
from rankbits.index.store.segment import Segment
from rankbits.index.store.words import words_of

ONE_COPY = MihOptions(copies=False)
NO_FILTER = np.empty(0, np.uint64)


def clustered(n, n_bits, seed, n_centers=5, flip=0.1):
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(7).random((n_centers, n_bits)) < 0.5
    bits = centers[rng.integers(n_centers, size=n)] ^ (rng.random((n, n_bits)) < flip)
    return BinaryCodes(np.packbits(bits, axis=1), n_bits)


def nearest_by_brute_force(items, query, allowed, request):
    """(distances, rows) by sorting all distances."""
    distances = np.bitwise_count(items.packed ^ query).sum(axis=1, dtype=int)
    order = np.flatnonzero(allowed)
    order = order[np.argsort(distances[order], kind="stable")]
    order = order[distances[order] <= request.radius]
    if request.k and len(order) > request.k:
        last = distances[order[request.k - 1]]
        order = order[distances[order] <= last] if request.is_complete else order[: request.k]
    return distances[order].tolist(), order.tolist()


def check(tables, items, queries, allowed, request):
    words = NO_FILTER if allowed.all() else words_of(allowed)
    answer = tables.search(queries, words, request)
    for q, query in enumerate(queries):
        part = slice(answer.offsets[q], answer.offsets[q + 1])
        pairs = answer.distances[part].tolist(), answer.ids[part].tolist()
        assert pairs == nearest_by_brute_force(items, query, allowed, request)


@settings(deadline=None)
@given(
    n=sampled_from([0, 1, 2, 3, 63, 64, 65, 255, 256, 257, 300, 3000]),
    n_bits=sampled_from([1, 7, 8, 12, 31, 32, 33, 64, 65, 100, 128, 129, 200, 520]),
    k=integers(0, 50),
    is_complete=booleans(),
    share=sampled_from([0.0, 0.2, 1.0]),
    flip=sampled_from([0.0, 0.1, 0.5]),
    seed=integers(0, 2**16),
    level=sampled_from(_native.dispatch_levels()),
)
def test_what_one_copy_finds_is_what_brute_force_finds(
    n, n_bits, k, is_complete, share, flip, seed, level
):
    items = clustered(n, n_bits, seed, flip=flip)
    queries = clustered(4, n_bits, seed + 1).packed
    allowed = np.random.default_rng(seed).random(n) < share
    request = Request(k, n_bits if k else n_bits // 4, is_complete or not k, 2, ONE_COPY)
    with _native.dispatched(level):
        check(Mih(Segment.of(items, range(n)), ONE_COPY, 2), items, queries, allowed, request)


@pytest.mark.parametrize("n", [0, 1, 2, 500])
def test_the_longest_codes_are_searched_too(n):
    items, queries = clustered(n, 4096, 0, flip=0.01), clustered(3, 4096, 1, flip=0.01).packed
    tables = Mih(Segment.of(items, range(n)), ONE_COPY, 1)
    check(tables, items, queries, np.ones(n, bool), Request(5, 4096, False, 1, ONE_COPY))


def prefixed(n, n_bits, prefixes, seed):
    """Clustered codes whose first two bytes are taken from a few, by chances that fall off."""
    packed = clustered(n, n_bits, seed).packed.copy()
    rng = np.random.default_rng(seed)
    numbers = np.minimum(rng.geometric(0.3, n) - 1, len(prefixes) - 1)
    packed[:, :2] = np.array(prefixes, "<u2").view(np.uint8).reshape(-1, 2)[numbers]
    return BinaryCodes(packed, n_bits)


@pytest.mark.parametrize("n_bits", [16, 24, 64, 100])
@pytest.mark.parametrize(
    "prefixes", [[0], [65535], [0, 65535], list(range(7, 65536, 4099)), list(range(300))]
)
def test_bytes_that_the_copy_leaves_out_are_found_again(n_bits, prefixes):
    n = 400_000  # from 185,364 codes on, the first substring has 16 bits and two bytes are left out
    assert _native.Mih.cut(n, -(-n_bits // 8), copies=False)[1] >= 16
    items = prefixed(n, n_bits, prefixes, 0)
    queries = np.concatenate([prefixed(2, n_bits, prefixes, 1).packed, items.packed[-1:]])
    tables = Mih(Segment.of(items, range(n)), ONE_COPY, 2)
    everything = np.ones(n, bool)
    check(tables, items, queries, everything, Request(20, n_bits, False, 1, ONE_COPY))
    check(tables, items, queries, everything, Request(0, 3, True, 1, ONE_COPY))


def test_many_clustered_codes_of_the_usual_length_are_found_as_a_scan_finds_them():
    n, n_bits = 700_000, 64
    segment = Segment.of(clustered(n, n_bits, 0, n_centers=700, flip=0.05), range(n))
    queries = clustered(30, n_bits, 1, n_centers=700, flip=0.05).packed
    tables, scan = Mih(segment, ONE_COPY, 2), Scan(segment, None, 1)
    for k in (1, 10, 1000):
        request = Request(k, n_bits, False, 1, ONE_COPY)
        for part, expected in zip(
            tables.search(queries, NO_FILTER, request),
            scan.search(queries, NO_FILTER, request),
            strict=True,
        ):
            np.testing.assert_array_equal(part, expected)


@settings(deadline=None)
@given(budget=integers(0, 20_000), seed=integers(0, 2**16))
def test_a_query_that_finishes_within_its_budget_is_right_and_costs_no_more(budget, seed):
    items, queries = clustered(3000, 48, seed), clustered(8, 48, seed + 1)
    tables = Mih(Segment.of(items, range(3000)), ONE_COPY, 1)
    request = Request(20, 48, False, 1, ONE_COPY)
    attempt = tables.attempt(queries.packed, NO_FILTER, request, budget)
    whole = tables.search(queries.packed, NO_FILTER, request)
    is_there = np.repeat(attempt.is_finished, whole.counts)
    np.testing.assert_array_equal(attempt.answer.ids, whole.ids[is_there])
    assert attempt.answer.counts[~attempt.is_finished].sum() == 0
    assert attempt.cost <= 8 * budget + 8 * (3000 + 24)  # the bucket that broke a budget counts


@pytest.mark.parametrize(
    ("n", "n_bits"),
    [(10**6, 32), (10**6, 64), (10**6, 128), (10**7, 64), (10**7, 128), (10**8, 64)],
)
def test_codes_and_tables_take_at_most_three_times_the_codes(n, n_bits):
    width = n_bits // 8
    assert n * width + _native.Mih.bytes_needed(n, width, copies=False) <= 3 * n * width


def test_the_memory_of_one_copy_is_what_it_is_said_to_be():
    n_tables, n_bits = 3, 18  # of a million codes of 64 bits: 2**19.9 items
    assert _native.Mih.cut(10**6, 8, copies=False) == (n_tables, n_bits)
    numbers = 10**6 * 20 // 8 + 8  # 20 bits each, and a word is read behind the last
    starts = (2**n_bits // 16 + 1) * (4 + 16)  # a number and a byte for each of sixteen buckets
    codes = 10**6 * 6 + 16  # without two bytes
    left_out = 2**16 * 4 + (10**6 // 256 + 2) * 2
    expected = n_tables * (numbers + starts) + codes + left_out
    assert _native.Mih.bytes_needed(10**6, 8, copies=False) == expected


@pytest.mark.parametrize("copies", [True, False])
def test_tables_do_not_read_the_planes_any_more_once_they_are_built(copies):
    codes = clustered(3000, 64, 0)
    planes = np.empty((47, 8, 64), np.uint8)
    _native.to_planes(codes.packed, planes)
    tables = _native.Mih(planes, 3000, 64, copies)
    planes[:] = 255
    answer, _, _ = tables.search(codes.packed[:3], 64, NO_FILTER, 1, 64, False, 2**63)
    assert answer[1].tolist() == [0, 0, 0]
