"""Tables without copies of the codes: they find the same, in less memory."""

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

WITHOUT_COPIES = MihOptions(copies=False)


def clustered(n, n_bits, seed, n_centres=5, flip=0.1):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(7).random((n_centres, n_bits)) < 0.5
    bits = centres[rng.integers(n_centres, size=n)] ^ (rng.random((n, n_bits)) < flip)
    return BinaryCodes.from_bits(bits)


@settings(deadline=None)
@given(
    n=sampled_from([1, 2, 63, 64, 65, 300, 3000]),
    n_bits=sampled_from([1, 8, 12, 31, 32, 48, 64, 65, 100, 128, 200, 520]),
    k=integers(0, 50),
    is_complete=booleans(),
    share=sampled_from([0.0, 0.2, 1.0]),
    seed=integers(0, 2**16),
    level=sampled_from(_native.dispatch_levels()),
)
def test_without_copies_the_same_is_found(n, n_bits, k, is_complete, share, seed, level):
    segment = Segment.of(clustered(n, n_bits, seed), range(n))
    queries = clustered(4, n_bits, seed + 1).packed
    allowed = words_of(np.random.default_rng(seed).random(n) < share)
    request = Request(k, n_bits if k else n_bits // 4, is_complete or not k, 2, WITHOUT_COPIES)
    with _native.dispatched(level):
        found = Mih(segment, WITHOUT_COPIES, 2).search(queries, allowed, request)
        whole = Scan(segment, None, 1).search(queries, allowed, request)
    for part, expected in zip(found, whole, strict=True):
        np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize("n_bits", [32, 64, 128])
def test_codes_and_tables_take_at_most_three_times_the_codes(n_bits):
    width, n = n_bits // 8, 1_000_000
    assert n * width + _native.Mih.bytes_needed(n, width, copies=False) <= 3 * n * width


def test_tables_outlive_the_segment_whose_planes_they_read():
    codes = clustered(3000, 64, 0)
    mih = Mih(Segment.of(codes, range(3000)), WITHOUT_COPIES, 1)
    other = np.full((3000, 8), 255, np.uint8)  # takes the memory if it has been given back
    found = mih.search(
        codes.packed[:3], np.empty(0, np.uint64), Request(1, 64, False, 1, WITHOUT_COPIES)
    )
    assert found.distances.tolist() == [0, 0, 0]
    assert other.all()
