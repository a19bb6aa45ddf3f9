"""Kernels of search refuse arrays whose sizes disagree, and stay inside their memory whatever the
bytes are: here bits beyond n_bits are set, as in a damaged file."""

import numpy as np
import pytest

from rankbits import _native
from rankbits.index.store.words import words_of

ALL = np.empty(0, np.uint64)


def planes_of(packed):
    planes = np.empty((-(-len(packed) // 64), packed.shape[1], 64), np.uint8)
    _native.to_planes(packed, planes)
    return planes


def packed_of(n, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, width), np.uint8)


def lists_of(packed, n_bits, n_lists=3):
    """Items dealt to lists by turns, whose centres are the first items."""
    rows = [np.arange(number, len(packed), n_lists) for number in range(n_lists)]
    groups = [-(-len(mine) // 64) for mine in rows]
    starts = np.concatenate([[0], np.cumsum(groups)]).astype(np.int64)
    places = np.full(64 * starts[-1], 0xFFFFFFFF, np.uint32)
    for start, mine in zip(starts, rows, strict=False):
        places[64 * start : 64 * start + len(mine)] = mine
    spread = np.zeros((len(places), packed.shape[1]), np.uint8)
    spread[places != 0xFFFFFFFF] = packed[places[places != 0xFFFFFFFF]]
    return {
        "planes": planes_of(spread),
        "n_bits": n_bits,
        "starts": starts,
        "rows": places,
        "n_rows": len(packed),
        "centres": planes_of(packed[:n_lists]),
        "n_centres": n_lists,
    }


def scan(**changed):
    usual = {"planes": planes_of(packed_of(100, 8)), "n": 100, "n_bits": 64, "allowed": ALL,
             "queries": packed_of(2, 8), "k": 3, "radius": 64, "is_complete": False}  # fmt: skip
    return _native.scan(**{**usual, **changed})


def scan_real(width=8, **changed):
    usual = {"planes": planes_of(packed_of(100, width)), "n": 100, "n_bits": 64, "allowed": ALL,
             "weights": np.ones((2, 64)), "correction": np.empty((0, 0)),
             "scores": np.empty((2, 3), np.float32), "rows": np.empty((2, 3), np.int64),
             "counts": np.empty(2, np.int64)}  # fmt: skip
    return _native.scan_real(**{**usual, **changed})


def from_planes(rows, n, width=8):
    out = np.empty((n, width), np.uint8)
    _native.from_planes(planes_of(packed_of(100, 8)), np.array(rows, np.int64), out)


def mih(n):
    return _native.Mih(planes_of(packed_of(100, 8)), n, 64)


def mih_search(**changed):
    usual = {"queries": packed_of(2, 8), "n_bits": 64, "allowed": ALL, "k": 3, "radius": 64,
             "is_complete": False, "budget": 2**63}  # fmt: skip
    mih(100).search(**{**usual, **changed})


def lists(**changed):
    return _native.Lists(**{**lists_of(packed_of(100, 8), 64), **changed})


def lists_search(**changed):
    usual = {"queries": packed_of(2, 8), "allowed": ALL, "k": 3, "radius": 64, "is_complete": False,
             "n_probes": 2}  # fmt: skip
    lists().search(**{**usual, **changed})


def replaced(name, place, value):
    array = lists_of(packed_of(100, 8), 64)[name].copy()
    array[place] = value
    return {name: array}


WORDS = np.ones(1, np.uint64)
WRONG = {
    "groups": (lambda: scan(n=129), r"planes of 129 .* shape \(3, 8, 64\), got \(2, 8, 64\)"),
    "fewer": (lambda: scan(n=64), r"shape \(1, 8, 64\)"),
    "too many": (lambda: scan(n=2**32), "at most 4294967168 items"),
    "width": (lambda: scan(n_bits=72), r"shape \(2, 9, 64\)"),
    "no bits": (lambda: scan(n_bits=0), "n_bits must be from 1 to 4096, got 0"),
    "many bits": (lambda: scan(n_bits=4097), "n_bits must be from 1 to 4096, got 4097"),
    "queries": (lambda: scan(queries=packed_of(2, 7)), "queries must have 8 bytes a code, got 7"),
    "allowed": (lambda: scan(allowed=WORDS), "allowed must be empty or have 2 words"),
    "real width": (lambda: scan_real(9), r"shape \(2, 8, 64\), got \(2, 9, 64\)"),
    "real groups": (lambda: scan_real(10, n=129), r"shape \(3, 10, 64\), got \(2, 10, 64\)"),
    "real allowed": (lambda: scan_real(allowed=WORDS), "allowed must be empty or have 2 words"),
    "weights": (lambda: scan_real(weights=np.ones((2, 63))), "a number for each of 64 bits, or 16"),
    "scores": (lambda: scan_real(weights=np.ones((3, 64))), "a row for each of 3 queries"),
    "correction": (lambda: scan_real(10, correction=np.ones((3, 255))), "correction must be empty"),
    "no factors": (lambda: scan_real(correction=np.ones((3, 256))), "correction must be empty"),
    "to planes": (
        lambda: _native.to_planes(packed_of(100, 8), np.empty((1, 8, 64), np.uint8)),
        r"planes of 100 .* \(2, 8, 64\), got \(1, 8, 64\)",
    ),
    "row behind": (lambda: from_planes([0, 128], 2), "rows must be from 0 to 127, got 128"),
    "row before": (lambda: from_planes([-1], 1), "got -1"),
    "few rows": (lambda: from_planes([0], 2), "packed must have a row for each of rows"),
    "all rows": (lambda: from_planes([], 129), "at most 128, got 129"),
    "packed": (lambda: from_planes([0], 1, 9), r"shape \(2, 9, 64\)"),
    "mih planes": (lambda: mih(129), r"shape \(3, 8, 64\)"),
    "mih bits": (lambda: mih_search(n_bits=65), "n_bits must be 64 as of the tables"),
    "mih queries": (lambda: mih_search(queries=packed_of(2, 9)), "queries must have 8 bytes"),
    "mih allowed": (lambda: mih_search(allowed=WORDS), "allowed must be empty or have 2 words"),
    "lists width": (lambda: lists(n_bits=57 + 8), r"shape \(3, 9, 64\)"),
    "centres": (lambda: lists(n_centres=65), r"centres of 65 .* shape \(2, 8, 64\)"),
    "starts": (lambda: lists(n_centres=4), "starts must be one more than the 4 centres, got 4"),
    "descending": (lambda: lists(**replaced("starts", 1, 3)), "starts must ascend from 0"),
    "late start": (lambda: lists(**replaced("starts", 0, 1)), "starts must ascend from 0"),
    "wrong end": (lambda: lists(**replaced("starts", -1, 4)), "number of groups, 3"),
    "rows": (lambda: lists(rows=np.zeros(64, np.uint32)), "64 to a group, 192, got 64"),
    "row": (lambda: lists(**replaced("rows", 3, 100)), "rows must be below 100 or .* got 100"),
    "gap": (lambda: lists(**replaced("rows", 3, 2**32 - 1)), "stand before its first 4294967295"),
    "lists queries": (lambda: lists_search(queries=packed_of(2, 9)), "queries must have 8 bytes"),
    "lists allowed": (lambda: lists_search(allowed=WORDS), "allowed must be empty or have 2 words"),
    "no probes": (lambda: lists_search(n_probes=0), "n_probes must be 1 or more"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_sizes_that_disagree_are_refused(case):
    call, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_no_queries_find_nothing():
    offsets, distances, rows = scan(queries=packed_of(0, 8))
    assert (offsets.tolist(), len(distances), len(rows)) == ([0], 0, 0)


def expected_pairs(packed, query, reach, is_allowed):
    """By (distance, row): all bits of the bytes count, also those beyond n_bits."""
    distances = np.bitwise_count(packed ^ query).sum(axis=1, dtype=int)
    order = np.argsort(distances, kind="stable")
    order = order[(distances[order] <= reach) & is_allowed[order]]
    return list(zip(distances[order].tolist(), order.tolist(), strict=True))


def check(found, packed, queries, k, reach, is_allowed):
    offsets, distances, rows = found
    for q, query in enumerate(queries):
        mine = slice(offsets[q], offsets[q + 1])
        pairs = expected_pairs(packed, query, reach, is_allowed)
        found_pairs = list(zip(distances[mine].tolist(), rows[mine].tolist(), strict=True))
        assert found_pairs == (pairs[:k] if k else pairs)


@pytest.mark.parametrize("n_queries", [1, 2, 7])
@pytest.mark.parametrize("n_bits", [1, 3, 9, 30, 57, 121, 241, 249, 1001, 4089])
def test_bits_beyond_the_last_do_no_harm(dispatch, n_bits, n_queries):
    width, rng = -(-n_bits // 8), np.random.default_rng(n_bits)
    n = 9000 if width < 32 else 4500  # from 4097 items on, a sample is looked at first
    packed = rng.integers(0, 256, (n, width), np.uint8)
    packed[: n // 2, -1] = 255  # far beyond n_bits from the queries, at the shortest lengths
    queries = rng.integers(0, 256, (n_queries, width), np.uint8)
    queries[0, -1] = 0
    planes = planes_of(packed)
    inverted = _native.Lists(**lists_of(packed, n_bits))
    tables = [_native.Mih(planes, n, n_bits, copies) for copies in (True, False) if width < 32]
    for k, radius in ((1, n_bits), (50, n_bits), (8990, n_bits), (0, n_bits // 3)):
        for share in (1.0, 0.3):
            is_allowed = rng.random(n) < share
            words = words_of(is_allowed) if share < 1 else ALL
            case, wanted = (packed, queries, k, radius, is_allowed), (k, radius, False)
            check(_native.scan(planes, n, n_bits, words, queries, *wanted, n_threads=2), *case)
            check(inverted.search(queries, words, *wanted, 3, n_threads=2), *case)
            for table in tables:
                check(table.search(queries, n_bits, words, *wanted, 2**63)[0], *case)


@pytest.mark.parametrize("level", _native.dispatch_levels())
def test_a_query_that_became_no_number_has_no_results(level):
    """Numbers are checked where they come in, but another thread may write to them later."""
    weights, counts = np.full((2, 64), 0.5), np.empty(2, np.int64)
    weights[1, 7] = np.nan
    with _native.dispatched(level):
        scan_real(weights=weights, counts=counts)
    assert counts.tolist() == [3, 0]
