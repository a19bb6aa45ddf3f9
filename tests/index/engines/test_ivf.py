"""Inverted lists: exact when all lists are looked into, honest distances when not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from

from rankbits import BinaryCodes, _native
from rankbits.errors import InputError
from rankbits.index import HammingIndex
from rankbits.index.engines import Request
from rankbits.index.engines.ivf import Ivf, IvfOptions
from rankbits.index.engines.scan import Scan
from rankbits.index.store.segment import Segment
from rankbits.index.store.words import words_of

NO_FILTER = np.empty(0, np.uint64)


def clustered(n, n_bits, seed, n_centres=20, flip=0.08):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).random((n_centres, n_bits)) < 0.5
    bits = centres[rng.integers(n_centres, size=n)] ^ (rng.random((n, n_bits)) < flip)
    return BinaryCodes.from_bits(bits)


@settings(deadline=None, max_examples=30)
@given(
    n=integers(1, 500),
    n_bits=sampled_from([8, 12, 64, 100, 300]),
    n_lists=integers(1, 12),
    k=integers(1, 40),
    seed=integers(0, 2**16),
    level=sampled_from(_native.dispatch_levels()),
)
def test_with_all_lists_looked_into_an_inverted_file_is_exact(n, n_bits, n_lists, k, seed, level):
    segment = Segment.of(clustered(n, n_bits, seed), range(n))
    queries = clustered(4, n_bits, seed + 1).packed
    request = Request(k, n_bits, False, 2, IvfOptions(n_lists, n_lists))
    with _native.dispatched(level):
        found = Ivf(segment, IvfOptions(n_lists), 1).search(queries, NO_FILTER, request)
        whole = Scan(segment, None, 1).search(queries, NO_FILTER, request)
    for mine, theirs in zip(found, whole, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_items_lie_in_the_list_of_their_nearest_centre():
    codes = clustered(700, 32, 1)
    ivf = Ivf(Segment.of(codes, range(700)), IvfOptions(9), 1)
    distances = (codes.bits()[:, None] != ivf._centers.codes().bits()).sum(axis=2)
    for number in range(9):
        places = ivf._rows[ivf._starts[number] * 64 : ivf._starts[number + 1] * 64]
        rows = places[places != 0xFFFFFFFF]
        assert (distances[rows].argmin(axis=1) == number).all()
        assert (np.diff(rows.astype(int)) > 0).all()
    assert sorted(ivf._rows[ivf._rows != 0xFFFFFFFF]) == list(range(700))


def test_more_probes_find_more_and_all_find_everything():
    index = HammingIndex(64, "ivf", n_lists=60)
    index.add(clustered(20_000, 64, 2))
    queries = clustered(50, 64, 3)
    exact, _ = HammingIndexOf(index).search(queries, 10)
    recalls = [
        (index.search(queries, 10, n_probes=probes)[0] <= exact[:, -1:]).mean()
        for probes in (1, 4, 60)
    ]
    assert recalls[0] <= recalls[1] <= recalls[2] == 1.0
    assert recalls[1] > 0.9


def HammingIndexOf(index):
    scan = HammingIndex(index.n_bits, "scan")
    scan.add(index.codes(), index.ids)
    return scan


def test_a_filter_holds_inside_lists():
    codes = clustered(3000, 64, 4)
    is_allowed = np.random.default_rng(0).random(3000) < 0.1
    segment = Segment.of(codes, range(3000))
    found = Ivf(segment, IvfOptions(30), 1).search(
        codes.packed[:20], words_of(is_allowed), Request(5, 64, False, 1, IvfOptions(30, 8))
    )
    assert is_allowed[found.ids].all()


def test_lists_are_the_same_whenever_they_are_built():
    segment = Segment.of(clustered(2000, 48, 5), range(2000))
    first, second = Ivf(segment, IvfOptions(), 1), Ivf(segment, IvfOptions(), 2)
    np.testing.assert_array_equal(first._planes, second._planes)
    np.testing.assert_array_equal(first._rows, second._rows)


def test_identical_codes_are_no_trouble():
    codes = BinaryCodes(np.zeros((3000, 8), np.uint8), 64)
    index = HammingIndex(64, "ivf")
    index.add(codes)
    distances, ids = index.search(codes[:2], 5)
    assert distances.tolist() == [[0] * 5] * 2
    assert len(set(ids[0])) == 5


@pytest.mark.parametrize("name", ["n_lists", "n_probes"])
def test_numbers_of_lists_are_checked(name):
    with pytest.raises(InputError, match=f"{name} must be an integer"):
        HammingIndex(64, "ivf", **{name: 0})
