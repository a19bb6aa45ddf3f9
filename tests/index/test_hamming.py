"""HammingIndex: how a collection lives, and the places where a scan could go wrong."""

import os
import signal
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from oracles.search import (
    codes_like,
    model_of,
    nearest,
    nearest_with_ties,
    opposite,
    pairs_of_ragged,
    pairs_of_table,
    queries_about,
    within,
)
from rankbits import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import HammingIndex

KINDS = ("auto", "scan", "mih")
GROUP, N_SAMPLED = 64, 16  # items of a group, groups that the scan looks at first


def built(codes, ids=None, kind="scan"):
    index = HammingIndex(codes.n_bits, kind)
    index.add(codes, ids)
    return index


def check(codes, queries, ks, radii=(), allowed=None, n_threads=1, kind="scan"):
    """Searches of an index of the codes against the dictionary."""
    index, ranked = built(codes, kind=kind), model_of(codes).ranked(queries, allowed)
    options = {"allowed": allowed, "n_threads": n_threads}
    for k in ks:
        assert pairs_of_table(index.search(queries, k, **options)) == nearest(ranked, k)
        found = index.search(queries, k, ties="complete", **options)
        assert pairs_of_ragged(found) == nearest_with_ties(ranked, k)
    for radius in radii:
        assert pairs_of_ragged(index.within(queries, radius, **options)) == within(ranked, radius)


def at_distance(rng, query, distances):
    """Codes at the given distances of one query, the bits that differ drawn at random."""
    bits = np.repeat(query.bits(), len(distances), axis=0)
    order = np.argsort(rng.random(bits.shape), axis=1)
    return BinaryCodes.from_bits(bits ^ (order < np.asarray(distances)[:, None]))


def is_in_sample(n):
    """Which items lie in the groups, evenly spread, that the first guess of k is made from."""
    n_groups = -(-n // GROUP)
    groups = np.arange(N_SAMPLED) * n_groups // N_SAMPLED
    return np.isin(np.arange(n) // GROUP, groups)


# The scan


@pytest.mark.parametrize("near_ones", ["in the sample", "outside the sample"])
@pytest.mark.parametrize("n_bits", [32, 64, 128, 200, 256])
def test_an_order_of_items_that_misleads_the_first_guess_changes_nothing(
    dispatch, rng, n_bits, near_ones
):
    n = 4096 + 17 * GROUP + 5
    is_near = is_in_sample(n) == (near_ones == "in the sample")
    query = codes_like("uniform", rng, 1, n_bits)
    distances = np.where(is_near, rng.integers(0, 3, n), rng.integers(n_bits // 2, n_bits + 1, n))
    codes = at_distance(rng, query, distances)
    others = queries_about(rng, codes, 4)
    queries = BinaryCodes(np.concatenate([query.packed, others.packed]), n_bits)
    check(codes, queries, (1, 10, 1024, 1500, n - 1))


@pytest.mark.parametrize("n_queries", [1, 5])
def test_near_items_that_stop_coming_after_a_limit_was_lowered_change_nothing(
    dispatch, rng, n_queries
):
    # The first half and the sample promise 4,000 items within 5 of the query, the second half has
    # hardly any, so that at k = 2,600 items at distance 6 of the second half are needed after all.
    n, n_bits = 40_000, 64
    chance = rng.random(n)
    is_first_half = np.arange(n) < n // 2
    is_promise = is_in_sample(n) & (chance < 0.06)
    near_first = np.select([chance < 0.1, chance < 0.11], [5, 6], 30)
    near_later = np.select([is_promise, chance > 0.5], [5, 6], 30)
    query = codes_like("uniform", rng, 1, n_bits)
    codes = at_distance(rng, query, np.where(is_first_half, near_first, near_later))
    queries = BinaryCodes(np.repeat(query.packed, n_queries, axis=0), n_bits)
    check(codes, queries, (2600,))


@pytest.mark.parametrize("order", ["nearest first", "nearest last", "nearest in the middle"])
def test_items_in_order_of_their_distance_change_nothing(dispatch, rng, order):
    n, n_bits = 20_000, 32
    query = codes_like("uniform", rng, 1, n_bits)
    distances = np.sort(rng.binomial(n_bits, 0.5, n))
    if order == "nearest last":
        distances = distances[::-1]
    if order == "nearest in the middle":
        distances = np.concatenate([distances[1::2][::-1], distances[::2]])
    check(at_distance(rng, query, distances), query, (1, 10, 100, 1000, 5000))


@pytest.mark.parametrize("n", [4095, 4096, 4097, 4160, 4161])
def test_collections_about_the_size_from_which_a_sample_is_taken(dispatch, rng, n):
    codes = codes_like("near", rng, n, 64)
    check(codes, queries_about(rng, codes, 3), (1, 100, n - 1, n, n + 1))


@pytest.mark.parametrize("allowed_ones", ["in the sample", "outside the sample", "last", "first"])
def test_a_filter_that_misleads_the_first_guess_changes_nothing(dispatch, rng, allowed_ones):
    n = 9000
    mask = is_in_sample(n)
    if allowed_ones == "outside the sample":
        mask = ~mask
    elif allowed_ones != "in the sample":
        mask = np.arange(n) == (n - 1 if allowed_ones == "last" else 0)
    codes = codes_like("near", rng, n, 48)
    check(codes, queries_about(rng, codes, 3), (1, 50, 1100), (5,), np.flatnonzero(mask))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_long_runs_of_items_that_a_filter_leaves_out_are_skipped_rightly(dispatch, rng, n_threads):
    n = 20_000
    mask = np.zeros(n, bool)
    for start in (0, 64, 70, 4095, 4096, 12_800, 12_863, n - 33):
        mask[start : start + rng.integers(1, 40)] = True
    codes = codes_like("uniform", rng, n, 64)
    allowed = np.flatnonzero(mask)
    check(codes, queries_about(rng, codes, 3), (1, 20, 400), (25,), allowed, n_threads)


@pytest.mark.parametrize("n_bits", [120, 121, 127, 128])
@pytest.mark.parametrize("n", [2000, 6000])
@pytest.mark.parametrize("kind", KINDS)
def test_a_query_far_from_everything_does_not_disturb_the_one_beside_it(
    dispatch, rng, kind, n, n_bits
):
    """Two queries share a pass; the limit of one stays at 128 while that of the other shrinks."""
    codes = codes_like("one", rng, n, n_bits)
    far, near = opposite(codes[:1]).packed, codes[:1].packed
    for pair in ([far, near], [near, far], [far, near, far]):
        queries = BinaryCodes(np.concatenate(pair), n_bits)
        check(codes, queries, (1, 600), (0, n_bits), kind=kind)


@pytest.mark.parametrize("n_bits", [241, 247, 248, 249, 255, 256, 257, 496, 497])
def test_sums_of_a_byte_do_not_overflow(dispatch, rng, n_bits):
    zeros = BinaryCodes(np.zeros((700, -(-n_bits // 8)), np.uint8), n_bits)
    ones = opposite(zeros)
    mixed = BinaryCodes(np.concatenate([zeros.packed, ones.packed]), n_bits)
    both = BinaryCodes(np.concatenate([zeros.packed[:1], ones.packed[:1]]), n_bits)
    check(mixed, both, (1, 701), (0, 1, n_bits - 1, n_bits))
    check(mixed, both[:1], (701,), (n_bits - 1, n_bits))


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 63, 65, 127, 129, 8191, 8193])
def test_what_stands_behind_the_last_item_is_never_found(dispatch, n):
    """Planes end in zeros, which are nearest to a query of zeros."""
    ones = BinaryCodes(np.full((n, 8), 255, np.uint8), 64)
    zeros = BinaryCodes(np.zeros((2, 8), np.uint8), 64)
    index = built(ones)
    distances, ids = index.search(zeros, n + 5)
    assert (distances[:, :n] == 64).all()
    assert ids[0].tolist() == [*range(n)]
    assert index.search(zeros, n, allowed=[0])[1][0].tolist() == [0, *[-1] * (n - 1)]
    assert index.within(zeros, 63).counts.tolist() == [0, 0]
    assert index.within(zeros, 64).counts.tolist() == [n, n]


@pytest.mark.parametrize("k", [1, 64, 511, 512, 513, 5000])
def test_of_items_that_all_tie_those_of_lowest_id_are_found(dispatch, rng, k):
    codes = codes_like("one", rng, 5000, 64)
    for n_threads in (1, 2, 3):
        index = built(codes, 3 * np.arange(5000))
        queries = queries_about(rng, codes, 4)
        assert (index.search(queries, k, n_threads=n_threads)[1] == 3 * np.arange(k)).all()
        complete = index.search(queries, k, ties="complete", n_threads=n_threads)
        assert complete.counts.tolist() == [5000] * 4


def test_items_that_come_ever_nearer_are_all_considered(dispatch, rng):
    """Each item beats all before it, so that the limit moves all the time; and the opposite."""
    query = codes_like("uniform", rng, 1, 256)
    falling = np.sort(rng.integers(0, 257, 6000))[::-1]
    for distances in (falling, falling[::-1]):
        codes = at_distance(rng, query, distances)
        queries = BinaryCodes(np.concatenate([query.packed, opposite(query).packed]), 256)
        for n_threads in (1, 2):
            check(codes, queries, (1, 100, 3000), (100,), n_threads=n_threads)


@pytest.mark.parametrize("k", [5000, 2**31, 2**32 + 1, 2**40])
def test_a_huge_k_with_complete_ties_is_all_there_is(dispatch, rng, k):
    codes = codes_like("few", rng, 4500, 32)
    found = built(codes).search(codes[:2], k, ties="complete")
    assert pairs_of_ragged(found) == model_of(codes).ranked(codes[:2])


# Against faiss


@pytest.fixture(scope="module")
def faiss():
    return pytest.importorskip("faiss", reason="the flat index to compare with needs faiss-cpu")


@pytest.mark.parametrize("shape", ["uniform", "near", "few"])
@pytest.mark.parametrize("n_bits", [8, 32, 64, 96, 128, 200, 256, 1000, 4096])
def test_distances_are_those_of_the_flat_index_of_faiss(dispatch, faiss, rng, n_bits, shape):
    n = 5000 if n_bits <= 256 else 700
    codes = codes_like(shape, rng, n, n_bits)
    queries = queries_about(rng, codes, 12)
    flat = faiss.IndexBinaryFlat(n_bits)
    flat.add(codes.packed)
    index = built(codes)
    for k in (1, 10, 300, n, n + 3):
        expected, labels = flat.search(queries.packed, min(k, n))
        distances, ids = index.search(queries, k)
        assert np.array_equal(distances, expected)
        assert np.array_equal(ids == -1, labels == -1)


@pytest.mark.parametrize("n_bits", [32, 128, 256])
def test_a_radius_is_inclusive_where_that_of_faiss_is_not(dispatch, faiss, rng, n_bits):
    codes = codes_like("near", rng, 2000, n_bits)
    queries = queries_about(rng, codes, 6)
    flat = faiss.IndexBinaryFlat(n_bits)
    flat.add(codes.packed)
    for radius in (0, 2, n_bits // 8, n_bits):
        limits, distances, labels = flat.range_search(queries.packed, radius + 1)
        expected = [
            sorted(zip(distances[a:b].astype(int).tolist(), labels[a:b].tolist(), strict=True))
            for a, b in pairwise(limits.tolist())
        ]
        assert pairs_of_ragged(built(codes).within(queries, radius)) == expected


# How a collection lives


def test_ids_count_on_from_the_largest_there_ever_was(rng):
    index = HammingIndex(16)
    codes = codes_like("uniform", rng, 3, 16)
    assert index.add(codes).tolist() == [0, 1, 2]
    index.remove([2])
    assert index.add(codes).tolist() == [3, 4, 5]
    assert index.add(codes, [50, 10, 30]).tolist() == [50, 10, 30]
    index.upsert(codes, [7, 99, 8])
    index.compact()
    assert index.add(codes).tolist() == [100, 101, 102]
    assert index.ids.tolist() == [0, 1, 3, 4, 5, 7, 8, 10, 30, 50, 99, 100, 101, 102]


def test_a_removed_id_can_be_added_again(rng):
    codes = codes_like("uniform", rng, 2, 16)
    index = built(codes[:1], [5])
    index.remove([5])
    assert (len(index), 5 in index) == (0, False)
    index.add(codes[1:], [5])
    assert (len(index), 5 in index) == (1, True)
    assert index.codes([5]) == codes[1:]


def test_codes_come_in_the_order_that_is_asked_for(rng):
    codes = codes_like("uniform", rng, 200, 20)
    index = HammingIndex(20)
    for rows in np.array_split(rng.permutation(200), 7):
        index.add(codes[rows], rows)
    asked = rng.integers(0, 200, 50)
    assert index.codes(asked) == codes[asked]
    assert index.codes() == codes
    assert len(index.codes([])) == 0


def test_adding_nothing_changes_nothing(rng):
    index = built(codes_like("uniform", rng, 5, 16))
    none = np.empty((0, 2), np.uint8)
    assert index.add(none).tolist() == []
    assert index.add(none, []).tolist() == []
    index.upsert(none, [])
    index.remove([])
    index.compact()
    assert index.ids.tolist() == [0, 1, 2, 3, 4]
    assert index.add(none[:0]).dtype == np.int64


def test_items_added_one_by_one_lie_in_few_parts(rng):
    codes = codes_like("uniform", rng, 300, 16)
    index = HammingIndex(16)
    for row in range(300):
        index.add(codes[row])
        assert len(index._current().parts) <= 2 + np.log2(row + 1)
    assert index.codes() == codes


def test_compaction_frees_what_was_removed(rng):
    codes = codes_like("uniform", rng, 6400, 64)
    index = built(codes)
    whole = index.n_bytes
    index.remove(np.arange(0, 6400, 2))
    assert index.n_bytes >= whole
    before = pairs_of_table(index.search(codes[:4], 9))
    index.compact()
    assert index.n_bytes <= whole // 2 + 8 * 3200 + 64 * 8
    assert pairs_of_table(index.search(codes[:4], 9)) == before


def test_a_scan_takes_little_more_memory_than_the_codes(rng):
    codes = codes_like("uniform", rng, 10_000, 64)
    index = built(codes)
    index.search(codes[:3], 5)
    assert index.n_bytes <= 1.1 * codes.packed.nbytes


def test_the_index_keeps_its_own_copy_of_codes_and_filters(rng):
    codes = codes_like("uniform", rng, 100, 16)
    packed, ids = codes.packed.copy(), np.arange(0, 200, 2)
    index = built(BinaryCodes(packed, 16), ids)
    packed[:], ids[:] = 0, 7
    index.ids[:] = 3
    assert not index.codes().packed.flags.writeable
    for found in index.search(codes[:2], 5):
        found[:] = 1
    assert index.ids.tolist() == list(range(0, 200, 2))
    assert index.codes() == codes


def test_the_ids_that_add_returns_are_the_callers_own(rng):
    index = HammingIndex(16)
    ids = index.add(codes_like("uniform", rng, 3, 16), [3, 5, 9])
    ids[:] = 0
    assert index.ids.tolist() == [3, 5, 9]


def test_ids_that_run_out_are_refused_and_nothing_is_added(rng):
    codes = codes_like("uniform", rng, 1, 16)
    index = built(codes, [2**63 - 2])
    for _ in range(2):
        with pytest.raises(InputError, match="ids"):
            index.add(codes)
        assert index.ids.tolist() == [2**63 - 2]


@pytest.mark.parametrize("k", [2**63, 2**64, 2**80])
def test_a_k_beyond_all_memory_is_refused_by_name(rng, k):
    index = built(codes_like("uniform", rng, 3, 16))
    with pytest.raises(InputError, match="k must be"):
        index.search(index.codes(), k)


def test_repr_says_how_many_of_what(rng):
    assert repr(built(codes_like("one", rng, 7, 12))) == "HammingIndex(n=7, n_bits=12, kind='scan')"


def test_threads_may_be_settled_for_the_index_or_for_a_search(rng):
    codes = codes_like("near", rng, 5000, 64)
    index = HammingIndex(64, n_threads=2)
    index.add(codes)
    found = pairs_of_table(index.search(codes[:5], 7))
    assert found == pairs_of_table(index.search(codes[:5], 7, n_threads=3))
    assert found == nearest(model_of(codes).ranked(codes[:5]), 7)


# Stopping

LONG_SEARCH = """
import signal, sys
from itertools import pairwise
import numpy as np
from rankbits.index import HammingIndex
rng = np.random.default_rng(0)
index = HammingIndex(128, sys.argv[1], n_threads=int(sys.argv[2]))
index.add(rng.integers(0, 256, (500_000, 16), np.uint8))
queries = rng.integers(0, 256, (500_000, 16), np.uint8)
signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent may ignore it: make test &
print("searching", flush=True)
try:
    index.search(queries, 10)
except KeyboardInterrupt:
    print("stopped", len(index), flush=True)
"""


@pytest.mark.parametrize(("kind", "n_threads"), [("scan", 1), ("scan", 2), ("mih", 1), ("auto", 2)])
def test_ctrl_c_stops_a_search_of_minutes(kind, n_threads):
    command = [sys.executable, "-c", LONG_SEARCH, kind, str(n_threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ, text=True) as process:
        try:
            assert process.stdout.readline() == "searching\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.5)
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "stopped 500000\n"
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()
