"""Arrays that begin at an odd address: what is read is copied first, what is written to is refused.

On a build with UndefinedBehaviorSanitizer, reading such an array as it lies ends the process.
"""

import numpy as np
import pytest

from rankbits import _native

NO_MASK = np.empty(0, np.uint64)


def at_odd_address(array):
    """The same numbers one byte behind the beginning of a buffer."""
    array = np.ascontiguousarray(array)
    odd = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(array.dtype)
    assert odd.flags.aligned == (array.itemsize == 1)
    return odd.reshape(array.shape)


def planes_of(packed):
    planes = np.empty((-(-len(packed) // 64), packed.shape[1], 64), np.uint8)
    _native.to_planes(packed, planes)
    return planes


def scan_real(place, rng):
    planes = planes_of(rng.integers(0, 256, (500, 8), np.uint8))
    scores, rows = np.empty((2, 5), np.float32), np.empty((2, 5), np.int64)
    counts, correction = np.empty(2, np.int64), np.empty((0, 0))
    allowed, weights = place(np.full(8, 2**52 + 5, np.uint64)), place(rng.standard_normal((2, 64)))
    _native.scan_real(planes, 500, 64, allowed, weights, correction, scores, rows, counts)
    return scores, rows, counts


def score_vectors(dtype):
    def score(place, rng):
        source = place(rng.integers(0, 100, (9, 5)).astype(dtype))
        rows, queries = place(np.arange(9)), place(rng.standard_normal((3, 5)))
        scores = np.empty(9)
        assert _native.score_vectors(source, rows, place(np.arange(9) % 3), queries, 1, scores) < 0
        return (scores,)

    return score


def multiply_rows(dtype):
    def multiply(place, rng):
        rows = place(rng.standard_normal((7, 5)).astype(dtype))
        products, squares = np.empty((3, 7)), np.empty(7)
        _native.multiply_rows(rows, place(rng.standard_normal((3, 5))), products, squares)
        return products, squares

    return multiply


def count_ties(dtype):
    def count(place, rng):
        marks, starts = place(np.sort(rng.standard_normal(50))), place(np.array([0, 50]))
        counts, is_open = np.zeros((2, 50), np.uint32), np.ones((1, 300), np.uint8)
        ties = _native.RankedTies(marks, starts, counts)
        del marks  # what was copied has to outlive the call
        distances = place(rng.standard_normal((1, 300)).astype(dtype))
        ties.add_block(distances, place(np.zeros(1)), np.zeros_like(is_open), is_open)
        return counts, is_open

    return count


def count_classes(place, rng):
    packed = rng.integers(0, 256, (40, 4), np.uint8)
    classes, counts = place(rng.integers(0, 3, 40).astype(np.int32)), np.zeros((3, 33, 2), np.int64)
    _native.count_classes(packed[:3], packed, place(np.arange(3, dtype=np.int32)), classes, counts)
    return (counts,)


def count_levels(place, rng):
    packed, counts = rng.integers(0, 256, (40, 4), np.uint8), np.zeros((3, 33, 2), np.int64)
    levels = place(rng.integers(0, 2, (3, 40)).astype(np.uint16))
    _native.count_levels(packed[:3], packed, levels, counts)
    return (counts,)


def soft_histogram(levels_type):
    def count(place, rng):
        queries, items = place(rng.uniform(-1, 1, (3, 16))), place(rng.uniform(-1, 1, (20, 16)))
        levels, own = place(rng.integers(0, 2, (3, 20)).astype(levels_type)), np.empty(0, np.int64)
        hist = _native.soft_histogram(queries, items, levels, own, 2, 16, 1.0, False, False)
        counts = np.empty((3, 17, 2))
        hist.counts(counts)
        return counts, np.array(_native.level_range(levels))

    return count


CALLS = {
    "scan_real": scan_real,
    **{f"score_vectors {d}": score_vectors(d) for d in ("uint16", "float32", "float64", "int8")},
    **{f"multiply_rows {dtype}": multiply_rows(dtype) for dtype in ("float32", "float64")},
    **{f"RankedTies {dtype}": count_ties(dtype) for dtype in ("float32", "float64")},
    "count_classes": count_classes,
    "count_levels": count_levels,
    **{f"soft_histogram {dtype}": soft_histogram(dtype) for dtype in ("int16", "int64")},
}


@pytest.mark.parametrize("level", _native.dispatch_levels())
@pytest.mark.parametrize("name", CALLS)
def test_arrays_at_odd_addresses_give_what_others_give(name, level):
    with _native.dispatched(level):
        expected = CALLS[name](np.copy, np.random.default_rng(0))
        results = CALLS[name](at_odd_address, np.random.default_rng(0))
    for result, right in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, right)


def test_an_array_that_is_to_be_written_at_an_odd_address_is_refused():
    packed = np.zeros((2, 1), np.uint8)
    _native.distances(packed, packed, np.empty((2, 2), np.uint16))
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.distances(packed, packed, np.zeros(9, np.uint8)[1:].view(np.uint16).reshape(2, 2))
