"""Arrays whose sizes do not match are a ValueError of the bindings, not memory read beside them."""

import numpy as np
import pytest

from rankbits import _native

WIDTH, N_QUERIES, N_ITEMS, N_LEVELS = 2, 3, 40, 2


def codes(n, width=WIDTH):
    return np.full((n, width), 255, np.uint8)


def zeros(*shape, dtype=np.int64):
    return np.zeros(shape, dtype)


def classes_call(**changes):
    return {
        "queries": codes(N_QUERIES) * 0,
        "items": codes(N_ITEMS),
        "query_class": zeros(N_QUERIES, dtype=np.int32),
        "item_class": zeros(N_ITEMS, dtype=np.int32),
        "counts": zeros(N_QUERIES, 13, N_LEVELS),
    } | changes


def levels_call(**changes):
    return {
        "queries": codes(N_QUERIES) * 0,
        "items": codes(N_ITEMS),
        "levels": zeros(N_QUERIES, N_ITEMS, dtype=np.uint8),
        "counts": zeros(N_QUERIES, 13, N_LEVELS),
    } | changes


def tags_call(**changes):
    return {
        "queries": codes(N_QUERIES) * 0,
        "items": codes(N_ITEMS),
        "starts": np.array([0, 1, 2, 3]),
        "tags": np.array([0, 4, 2], np.int32),
        "rows": np.ones((N_ITEMS, 5), np.uint8),
        "counts": zeros(N_QUERIES, 13, N_LEVELS),
    } | changes


def largest_call(**changes):
    return {
        "queries": codes(N_QUERIES) * 0,
        "codes": codes(N_ITEMS),
        "n_items": np.ones(N_ITEMS, np.int64),
        "largest": zeros(N_QUERIES, 8 * WIDTH + 1),
    } | changes


def distances_call(**changes):
    return {
        "queries": codes(N_QUERIES) * 0,
        "items": codes(N_ITEMS),
        "out": zeros(N_QUERIES, N_ITEMS, dtype=np.uint16),
    } | changes


def reals(*shape, dtype=np.float32):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=dtype).reshape(shape)


N_BITS, N_BINS = 8, 8


def soft_call(dtype=np.float32, **changes):
    call = {
        "queries": reals(N_QUERIES, N_BITS, dtype=dtype),
        "items": reals(N_ITEMS, N_BITS, dtype=dtype),
        "levels": zeros(N_QUERIES, N_ITEMS, dtype=np.uint8),
        "own": np.full(N_QUERIES, -1),
        "n_levels": N_LEVELS,
        "n_bins": N_BINS,
        "delta": 1.0,
        "is_square": False,
        "keeps_cells": True,
    }
    return call | changes


def ap_call(**changes):
    return {
        "counts": np.ones((N_QUERIES, 9, 2)),
        "level_counts": np.full((N_QUERIES, 2), 9),
        "form": 0,
        "values": np.zeros(N_QUERIES),
        "grads": np.zeros((N_QUERIES, 9, 2)),
    } | changes


CALLS = {
    "count_classes": (
        classes_call,
        [
            ({"items": codes(N_ITEMS, 3)}, "queries and items must have the same width, got 2 and"),
            ({"queries": codes(3, 513), "items": codes(N_ITEMS, 513)}, "1 to 512 bytes wide"),
            ({"queries": codes(3, 0), "items": codes(N_ITEMS, 0)}, "1 to 512 bytes wide, got 0"),
            ({"query_class": zeros(2, dtype=np.int32)}, r"query_class must have shape \(3\)"),
            ({"item_class": zeros(39, dtype=np.int32)}, r"item_class must have shape \(40\)"),
            ({"query_class": np.array([0, 1, 3], np.int32)}, "query_class must be below 3, got 3"),
            ({"counts": zeros(2, 13, 2)}, r"counts must have shape \(3, 13, 2\), got \(2, 13, 2\)"),
            ({"counts": zeros(3, 18, 2)}, "counts must have 1 to 17 bins, got 18"),
            ({"counts": zeros(3, 0, 2)}, "counts must have 1 to 17 bins, got 0"),
            ({"counts": zeros(3, 13, 0)}, "counts must have 1 to 65536 levels, got 0"),
            ({"counts": zeros(3, 13, 3)}, "query_class must be below 0, got 0"),
        ],
    ),
    "count_levels": (
        levels_call,
        [
            ({"items": codes(N_ITEMS, 1)}, "same width"),
            ({"levels": zeros(3, 39, dtype=np.uint8)}, r"levels must have shape \(3, 40\), got"),
            ({"levels": np.full((3, 40), 2, np.uint8)}, "levels must be below 2, got 2"),
            ({"levels": np.full((3, 40), 2, np.uint16)}, "levels must be below 2, got 2"),
            ({"levels": zeros(2, 40, dtype=np.uint16)}, r"levels must have shape \(3, 40\), got"),
            ({"counts": zeros(4, 13, 2)}, r"counts must have shape \(3, 13, 2\)"),
        ],
    ),
    "count_tags": (
        tags_call,
        [
            ({"items": codes(N_ITEMS, 1)}, "same width"),
            ({"rows": np.ones((39, 5), np.uint8)}, r"rows must have shape \(40, 5\)"),
            ({"starts": np.array([0, 1, 2])}, r"starts must have shape \(4\)"),
            ({"starts": np.array([0, 1, 2, 4])}, "starts must ascend from 0 to at most 3"),
            ({"starts": np.array([0, 2, 1, 3])}, "starts must ascend"),
            ({"starts": np.array([-1, 1, 2, 3])}, "starts must ascend"),
            ({"tags": np.array([0, 5, 2], np.int32)}, "tags must be below 5, got 5"),
            ({"tags": np.array([0, -1, 2], np.int32)}, "tags must be at least 0, got -1"),
            ({"counts": zeros(3, 99, 2)}, "counts must have 1 to 17 bins"),
        ],
    ),
    "largest_counts": (
        largest_call,
        [
            ({"codes": codes(N_ITEMS, 1)}, "same width"),
            ({"n_items": np.ones(39, np.int64)}, r"n_items must have shape \(40\)"),
            ({"largest": zeros(3, 13)}, r"largest must have shape \(3, 17\), got \(3, 13\)"),
        ],
    ),
    "distances": (
        distances_call,
        [
            ({"items": codes(N_ITEMS, 1)}, "same width"),
            ({"out": zeros(3, 39, dtype=np.uint16)}, r"out must have shape \(3, 40\)"),
        ],
    ),
    "soft_histogram": (
        soft_call,
        [
            ({"items": reals(N_ITEMS, 7)}, r"items must have shape \(40, 8\), got \(40, 7\)"),
            ({"is_square": True}, r"items must have shape \(3, 8\)"),
            ({"queries": reals(3, 0), "items": reals(40, 0)}, "at least one bit"),
            ({"n_bins": 0}, "n_bins must be from 1 to 4096, got 0"),
            ({"n_bins": 2**63}, "n_bins must be from 1 to 4096"),
            ({"n_levels": 0}, "n_levels must be from 1 to 256, got 0"),
            ({"n_levels": 257}, "n_levels must be from 1 to 256, got 257"),
            ({"levels": zeros(3, 39, dtype=np.uint8)}, r"levels must have shape \(3, 40\)"),
            ({"levels": np.zeros((3, 40))}, "levels must be of type uint8, int8, int16, int32 or"),
            ({"own": np.zeros(2, np.int64)}, r"own must have shape \(3\)"),
        ],
    ),
    "ap_of_counts": (
        ap_call,
        [
            ({"counts": np.ones((3, 9, 1))}, "counts must have 2 levels, got 1"),
            ({"level_counts": zeros(2, 2)}, r"level_counts must have shape \(3, 2\)"),
            ({"values": np.zeros(2)}, r"values must have shape \(3\)"),
            ({"grads": np.zeros((3, 8, 2))}, r"grads must have shape \(3, 9, 2\)"),
            ({"form": 7}, "form must be from 0 to 3, got 7"),
        ],
    ),
}  # fmt: skip
CASES = [(name, k) for name, (_, cases) in CALLS.items() for k in range(len(cases))]


@pytest.mark.parametrize("name", CALLS)
def test_sizes_that_match_are_taken(dispatch, name):
    getattr(_native, name)(**CALLS[name][0]())


@pytest.mark.parametrize(("name", "case"), CASES)
def test_sizes_that_do_not_match_are_a_value_error(dispatch, name, case):
    call, cases = CALLS[name]
    changes, says = cases[case]
    with pytest.raises(ValueError, match=says):
        getattr(_native, name)(**call(**changes))


def test_nothing_is_counted_where_there_is_nothing(dispatch):
    for n_queries, n_items in [(0, 40), (3, 0), (0, 0)]:
        queries, items = codes(n_queries), codes(n_items)
        counts = zeros(n_queries, 13, 2)
        classes = [zeros(n, dtype=np.int32) for n in (n_queries, n_items)]
        _native.count_classes(queries, items, *classes, counts)
        _native.count_levels(queries, items, zeros(n_queries, n_items, dtype=np.uint8), counts)
        starts, tags = zeros(n_queries + 1), zeros(0, dtype=np.int32)
        _native.count_tags(queries, items, starts, tags, np.ones((n_items, 4), np.uint8), counts)
        assert not counts.any()


def test_items_of_a_class_that_no_query_has_are_of_level_0(dispatch):
    call = classes_call(item_class=np.full(N_ITEMS, 2**31 - 1, np.int32), counts=zeros(3, 17, 2))
    _native.count_classes(**call)
    assert call["counts"][:, 16, 0].tolist() == [N_ITEMS] * 3


GAINS, SUMS = np.arange(2.0), np.arange(99.0)
RELEVANCE = np.array([0.0, 1.0])
METHOD_CASES = [
    ("counts", (reals(3, 8, 2),), r"out must have shape \(3, 9, 2\), got \(3, 8, 2\)"),
    ("ap", (0, RELEVANCE, reals(2)), r"values must have shape \(3\)"),
    ("ap", (0, np.zeros(3), reals(3)), r"relevance must have shape \(2\)"),
    ("ap", (4, RELEVANCE, reals(3)), "form must be from 0 to 3, got 4"),
    ("ndcg", (0, np.zeros(1), SUMS, reals(3)), r"gains must have shape \(2\)"),
    ("ndcg", (0, GAINS, np.zeros(1), reals(3)), "discount_sums must have at least 2 values, got 1"),
    ("ndcg", (0, GAINS, SUMS, reals(4)), r"values must have shape \(3\)"),
    ("ndcg", (-1, GAINS, SUMS, reals(3)), "form must be from 0 to 3, got -1"),
    ("pull_values", (reals(2), reals(3, 8), reals(40, 8)), r"grad_values must have shape \(3\)"),
    ("pull_values", (reals(3), reals(2, 8), reals(40, 8)), r"grad_queries must have shape"),
    ("pull_counts", (reals(3, 8, 2), reals(3, 8), reals(40, 8)), r"grad_counts must have shape"),
    ("pull_counts", (reals(3, 9, 2), reals(3, 8), reals(39, 8)), r"grad_items must have shape"),
]


@pytest.mark.parametrize(("method", "arguments", "says"), METHOD_CASES)
def test_arrays_of_another_shape_than_the_histogram_are_a_value_error(
    dispatch, method, arguments, says
):
    hist = _native.soft_histogram(**soft_call())
    hist.ap(0, RELEVANCE, reals(3))
    with pytest.raises(ValueError, match=says):
        getattr(hist, method)(*arguments)


def test_a_histogram_is_pulled_only_after_what_pulling_needs():
    no_cells = _native.soft_histogram(**soft_call(keeps_cells=False))
    no_cells.ap(0, RELEVANCE, reals(3))
    no_values = _native.soft_histogram(**soft_call())
    three_levels = _native.soft_histogram(**soft_call(n_levels=3))
    for_codes = reals(3, 8), reals(40, 8)
    with pytest.raises(ValueError, match="grad_counts must be those of a histogram that keeps"):
        no_cells.pull_counts(reals(3, 9, 2), *for_codes)
    for hist in (no_cells, no_values):
        with pytest.raises(ValueError, match="grad_values must come after values"):
            hist.pull_values(reals(3), *for_codes)
    with pytest.raises(ValueError, match="relevance must have shape"):
        three_levels.ap(0, RELEVANCE, reals(3))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, -1e30])
def test_soft_counts_of_any_number_stay_inside_their_tables(dispatch, value):
    for dtype in (np.float32, np.float64):
        queries = np.full((N_QUERIES, N_BITS), value, dtype)
        hist = _native.soft_histogram(**soft_call(dtype, queries=queries))
        values = np.zeros(N_QUERIES, dtype)
        for_codes = np.zeros((N_QUERIES, N_BITS), dtype), np.zeros((N_ITEMS, N_BITS), dtype)
        for form in range(4):
            hist.ap(form, RELEVANCE, values)
            hist.ndcg(form, GAINS, SUMS, values)
            hist.pull_values(values, *for_codes)
            _native.ap_of_counts(**ap_call(counts=np.full((N_QUERIES, 9, 2), value), form=form))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64])
def test_levels_that_do_not_exist_count_as_the_last_one(dispatch, dtype):
    info = np.iinfo(dtype)
    levels = np.resize(np.array([0, 1, 2, 5, info.max, info.min], dtype), (N_QUERIES, N_ITEMS))
    for precision in (np.float32, np.float64):
        hist = _native.soft_histogram(**soft_call(precision, levels=levels, n_levels=3))
        counts = np.zeros((N_QUERIES, N_BINS + 1, 3), precision)
        hist.counts(counts)
        places = np.where((levels < 0) | (levels > 2), 2, levels)
        sizes = [np.bincount(row, minlength=3) for row in places]
        np.testing.assert_allclose(counts.sum(1), sizes, rtol=1e-6)
        assert hist.has_negative_level == (info.min < 0)
    assert _native.level_range(levels) == (info.min, info.max)


def test_polygammas_refuse_sizes_that_do_not_match():
    with pytest.raises(ValueError, match=r"out must have shape \(5, 13\), got \(5, 12\)"):
        _native.polygammas(np.ones(10), np.zeros((5, 12)))
