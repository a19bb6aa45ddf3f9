"""Real-valued queries: what scoring every item gives, whatever parts, filters and threads."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits import BinaryCodes
from rankbits.codes import Queries
from rankbits.errors import InputError
from rankbits.index import (
    Candidates,
    Collection,
    HammingIndex,
    TablesIndex,
    asymmetric,
    engines,
    real_queries,
)
from rankbits.index.engines.cache import EngineCache
from rankbits.index.reranking.base import reranked
from rankbits.index.results import of_table


@pytest.fixture(autouse=True, scope="module")
def threads_for_few_items():
    """Work for several threads is shared however little it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(real_queries, "_WORTH_A_THREAD", 1)
        yield


def brute_force(bits, ids, weights, k):
    """Scores in double, rounded to float32, ordered by (-score, id)."""
    scores = (weights @ np.where(bits, 1.0, -1.0).T).astype(np.float32)
    order = np.lexsort((np.broadcast_to(ids, scores.shape), -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), ids[order]


def brute_force_by_tables(bits, ids, tables, k):
    """The number that each four bits name, added up one after the other in whole numbers."""
    padded = np.pad(bits.astype(int), ((0, 0), (0, -bits.shape[1] % 4)))
    scores = np.zeros((len(tables), len(bits)))
    for start in range(0, padded.shape[1], 4):
        values = [int("".join(map(str, row)), 2) for row in padded[:, start : start + 4]]
        scores += tables[:, 4 * start : 4 * start + 16][:, values]
    scores = scores.astype(np.float32)
    order = np.lexsort((np.broadcast_to(ids, scores.shape), -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), ids[order]


def binary_fractions(rng, shape):
    """Numbers whose sums float64 holds exactly, in any order."""
    return rng.integers(-(2**20), 2**20, shape) / 2**10


def check_against_brute_force(index, bits, ids, weights, k, **settings):
    order = np.argsort(ids)
    expected = brute_force(bits[order].astype(bool), ids[order], weights, k)
    scores, answer_ids = index.search_real(weights, k, **settings)
    np.testing.assert_array_equal(scores, expected[0])
    np.testing.assert_array_equal(answer_ids, expected[1])


@given(st.data())
def test_the_result_is_a_product_and_a_sort_by_score_and_id(dispatch, data):
    n_bits = data.draw(st.one_of(st.integers(1, 140), st.integers(1, 4096)))
    most = min(9000, 2**20 // n_bits)
    n = data.draw(st.one_of(st.integers(1, min(200, most)), st.integers(1, most)))
    n_queries = data.draw(st.sampled_from([1, 2, 3, 17]))
    k = data.draw(st.one_of(st.integers(1, 20), st.integers(1, 2 * n)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    bits, ids = rng.integers(0, 2, (n, n_bits)), rng.permutation(3 * n)[:n]
    weights = data.draw(
        st.sampled_from(
            [
                binary_fractions(rng, (n_queries, n_bits)),
                rng.integers(-1, 2, (n_queries, n_bits)).astype(np.float64),
                binary_fractions(rng, (n_queries, n_bits)) * (rng.random(n_bits) < 0.1),
            ]
        )
    )
    index = HammingIndex(n_bits, data.draw(st.sampled_from(["auto", "scan", "mih", "ivf"])))
    index.add(BinaryCodes.from_bits(bits), ids)
    n_threads = data.draw(st.integers(1, 4))
    check_against_brute_force(index, bits, ids, weights, k, n_threads=n_threads)
    is_allowed = rng.random(n) < data.draw(st.sampled_from([0.01, 0.5, 0.99]))
    n_there = int(is_allowed.sum())
    if n_there > 0:
        chosen = bits[is_allowed], ids[is_allowed], weights, min(k, n_there)
        check_against_brute_force(index, *chosen, n_threads=n_threads, allowed=ids[is_allowed])


@given(st.data())
def test_tables_of_sixteen_numbers_give_the_sums_of_what_the_bits_name(dispatch, data):
    n_bits = data.draw(st.integers(1, 140))
    n, n_queries = data.draw(st.integers(1, 400)), data.draw(st.sampled_from([1, 3, 17]))
    k = data.draw(st.integers(1, 2 * n))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    bits, ids = rng.integers(0, 2, (n, n_bits)), np.sort(rng.permutation(3 * n)[:n])
    shape = n_queries, 16 * -(-n_bits // 4)
    tables = data.draw(
        st.sampled_from(
            [
                binary_fractions(rng, shape),
                rng.integers(-1, 2, shape).astype(np.float64),  # most scores are ties
                binary_fractions(rng, shape) * (rng.random(shape) < 0.1),
            ]
        )
    )
    index = HammingIndex(n_bits)
    index.add(BinaryCodes.from_bits(bits), ids)
    n_threads = data.draw(st.integers(1, 4))
    expected = brute_force_by_tables(bits, ids, tables, k)
    scores, answer_ids = index.search_real(tables, k, n_threads=n_threads)
    np.testing.assert_array_equal(scores, expected[0])
    np.testing.assert_array_equal(answer_ids, expected[1])
    some = ids[rng.random(n) < 0.5]
    if len(some):
        is_allowed = np.isin(ids, some)
        expected = brute_force_by_tables(bits[is_allowed], some, tables, min(k, len(some)))
        scores, answer_ids = index.search_real(tables, k, allowed=some, n_threads=n_threads)
        np.testing.assert_array_equal(scores[:, : len(some)], expected[0])
        np.testing.assert_array_equal(answer_ids[:, : len(some)], expected[1])


def test_tables_of_sums_of_weights_give_what_the_weights_give(dispatch, rng):
    bits, weights = rng.integers(0, 2, (3000, 44)), binary_fractions(rng, (5, 44))
    values = np.where(np.arange(16)[:, None] >> np.array([3, 2, 1, 0]) & 1, 1.0, -1.0)
    tables = np.einsum("qgb,vb->qgv", weights.reshape(5, 11, 4), values).reshape(5, -1)
    index = HammingIndex(44)
    index.add(BinaryCodes.from_bits(bits))
    for found, expected in zip(
        index.search_real(tables, 50), index.search_real(weights, 50), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_threads", [2, 3, 5])
@pytest.mark.parametrize("n", [3000, 7000])
def test_ties_go_by_id_where_threads_share_the_items(dispatch, rng, n_threads, n):
    bits, ids = rng.integers(0, 2, (n, 9)), np.arange(n)
    weights = rng.integers(-2, 3, (1, 9)).astype(np.float64)
    index = HammingIndex(9)
    index.add(BinaryCodes.from_bits(bits))
    n_ties = np.unique(weights @ np.where(bits, 1, -1).T, return_counts=True)[1][::-1]
    n_at_least = np.cumsum(n_ties)
    for share in (0.0, 0.1, 0.25, 0.4):  # of the items of a score that must not be returned
        for k in np.unique(n_at_least - (share * n_ties).astype(int)):
            check_against_brute_force(index, bits, ids, weights, k, n_threads=n_threads)


@pytest.mark.parametrize(("seed", "k"), [(233, 43), (261, 30), (576, 51), (648, 105)])
def test_ties_go_by_id_also_among_the_items_of_the_last_thread(seed, k):
    """Cases, found by trying thousands, where that depends on how the threads' items are joined."""
    rng = np.random.default_rng(seed)
    bits = np.unpackbits(rng.integers(0, 256, (int(rng.integers(300, 6000)), 1), np.uint8), axis=1)
    weights = rng.integers(-2, 3, (1, 8)).astype(np.float64)
    index = HammingIndex(8)
    index.add(BinaryCodes.from_bits(bits))
    check_against_brute_force(index, bits, np.arange(len(bits)), weights, k, n_threads=2)


@pytest.mark.parametrize("n_best", [1050, 1150, 1250, 1350, 1450, 1600, 1800])
def test_ties_go_by_id_where_the_k_th_is_one_of_many_best(dispatch, rng, n_best):
    bits = rng.integers(0, 2, (40_000, 8))
    bits[:, 0] = 0
    bits[rng.permutation(40_000)[:n_best], 0] = 1
    weights = np.zeros((20, 8))
    weights[:, 0] = 1
    index = HammingIndex(8)
    index.add(BinaryCodes.from_bits(bits))
    check_against_brute_force(index, bits, np.arange(40_000), weights, 1000)


@pytest.mark.parametrize("n_queries", [1, 20])
@pytest.mark.parametrize("k", [70, 100, 600])
def test_items_that_a_sample_leads_astray_about_are_found(dispatch, rng, n_queries, k):
    """The first group, which every sample has, is far better than all others."""
    bits = rng.integers(0, 2, (9000, 32))
    bits[:64] = 1
    weights = np.abs(binary_fractions(rng, (n_queries, 32)))
    index = HammingIndex(32)
    index.add(BinaryCodes.from_bits(bits))
    check_against_brute_force(index, bits, np.arange(9000), weights, k)


@pytest.mark.parametrize("is_ascending", [True, False])
def test_items_in_order_of_their_score_are_found(dispatch, rng, is_ascending):
    weights = binary_fractions(rng, (20, 24))
    bits = rng.integers(0, 2, (40_000, 24))
    order = np.argsort(bits @ weights[0])
    bits = bits[order if is_ascending else order[::-1]]
    index = HammingIndex(24)
    index.add(BinaryCodes.from_bits(bits))
    for k in (1, 30, 300):
        check_against_brute_force(index, bits, np.arange(len(bits)), weights, k)


@pytest.mark.parametrize("n_bits", [1, 7, 12, 33, 64, 100, 128, 520])
@pytest.mark.parametrize("n", [1, 63, 65, 1000, 9000])
def test_scores_are_those_of_re_ranking_all_items(dispatch, rng, n_bits, n):
    bits = rng.integers(0, 2, (n, n_bits))
    weights = rng.standard_normal((5, n_bits))
    weights[1], weights[2] = np.round(weights[1]), 0.0  # many ties, and nothing but ties
    index = HammingIndex(n_bits, "scan")
    index.add(BinaryCodes.from_bits(bits))
    for k, n_threads in ((1, 1), (10, 2), (n, 1)):
        scores, ids = index.search_real(weights, k, n_threads=n_threads)
        codes = BinaryCodes.from_logits(weights)
        everything = of_table(*index.search(codes, n))
        candidates = Candidates(Queries(codes), everything, index.codes)
        expected, expected_ids = reranked([candidates], asymmetric(weights), min(k, n))
        np.testing.assert_array_equal(scores, -expected)
        np.testing.assert_array_equal(ids, expected_ids)


def test_whole_weights_agree_with_a_matrix_product(rng):
    """Sums of whole numbers have no rounding, so that ties and order must agree to the last."""
    bits, weights = rng.integers(0, 2, (3000, 40)), rng.integers(-3, 4, (6, 40)).astype(float)
    index = HammingIndex(40)
    index.add(BinaryCodes.from_bits(bits))
    expected, expected_ids = brute_force(bits.astype(bool), np.arange(3000), weights, 25)
    scores, ids = index.search_real(weights, 25)
    np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(ids, expected_ids)


def test_parts_removals_and_filters_make_no_difference(rng, tmp_path):
    bits, weights = rng.integers(0, 2, (500, 24)), rng.integers(-2, 3, (4, 24)).astype(float)
    ids = rng.permutation(10_000)[:500]
    with Collection.create(tmp_path / "items", 24) as collection:
        for rows in np.array_split(np.arange(500), 7):
            collection.add(BinaryCodes.from_bits(bits[rows]), ids[rows])
        collection.remove(ids[:50])
        allowed = ids[100:300]
        for selection, left in ((None, slice(50, 500)), (allowed, slice(100, 300))):
            order = np.argsort(ids[left])
            expected = brute_force(bits[left][order].astype(bool), ids[left][order], weights, 30)
            scores, found_ids = collection.search_real(weights, 30, allowed=selection)
            np.testing.assert_array_equal(scores, expected[0])
            np.testing.assert_array_equal(found_ids, expected[1])


class EngineUsed(Exception):
    """A search asked for an engine, which real-valued queries have no use for."""


@pytest.fixture
def no_engines(monkeypatch):
    """Whoever asks for an engine fails."""

    def refuse(*arguments):
        raise EngineUsed

    monkeypatch.setattr(EngineCache, "engine", refuse)


@pytest.mark.parametrize("place", ["index", "collection"])
@pytest.mark.parametrize("kind", engines.names())
def test_every_kind_scans_all_parts_and_builds_nothing(no_engines, rng, tmp_path, kind, place):
    bits, weights = rng.integers(0, 2, (6000, 16)), rng.integers(-2, 3, (4, 16)).astype(float)
    index = HammingIndex(16, kind)
    if place == "collection":
        index = Collection.create(tmp_path / "items", 16, kind)
    for rows in (slice(0, 5000), slice(5000, 5900), slice(5900, 6000)):
        index.add(BinaryCodes.from_bits(bits[rows]))
    assert len(index._current().parts) > 1
    n_bytes = index.n_bytes
    check_against_brute_force(index, bits, np.arange(6000), weights, 50)
    codes = BinaryCodes.from_logits(weights)
    negated, ids = index.search(codes, 50, rerank=asymmetric(weights))  # no pool: all items
    scores, real_ids = index.search_real(weights, 50)
    np.testing.assert_array_equal(negated, -scores)
    np.testing.assert_array_equal(ids, real_ids)
    assert index.n_bytes == n_bytes
    for by_distance in ({}, {"rerank": asymmetric(weights), "pool": 60}):
        with pytest.raises(EngineUsed):
            index.search(codes, 50, **by_distance)
    if place == "collection":
        index.close()


@pytest.mark.parametrize("kind", engines.names())
def test_tables_of_every_kind_scan_and_build_nothing(no_engines, rng, kind):
    bits, weights = rng.integers(0, 2, (2, 5000, 16)), rng.integers(-2, 3, (2, 4, 16)).astype(float)
    tables = TablesIndex(16, n_tables=2, kind=kind)
    tables.add([BinaryCodes.from_bits(its_bits) for its_bits in bits])
    scores, ids = tables.search_real(weights, 50)
    largest = (weights @ np.where(bits, 1.0, -1.0).transpose(0, 2, 1)).max(axis=0)
    order = np.argsort(-largest, axis=1, kind="stable")[:, :50]
    np.testing.assert_array_equal(ids, order)
    np.testing.assert_array_equal(scores, np.take_along_axis(largest, order, axis=1))


def test_places_left_over_are_filled(rng):
    index = HammingIndex(8)
    index.add(BinaryCodes.from_bits(rng.integers(0, 2, (5, 8))))
    scores, ids = index.search_real(np.ones((1, 8)), 4, allowed=[3])
    assert ids.tolist() == [[3, -1, -1, -1]]
    assert np.isneginf(scores[0, 1:]).all()
    assert HammingIndex(8).search_real(np.ones((2, 8)), 3)[1].shape == (2, 0)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((2, 7)), r"weights must be real numbers of shape \(queries, 8\)"),
        (np.ones((2, 33)), r"or \(queries, 32\), 16 for every four bits"),
        (np.full((1, 8), np.nan), "weights must be finite"),
        (np.full((1, 32), np.nan), "weights must be finite"),
        (np.full((1, 8), 1e38), "weights must add up to a number that float32 holds"),
        (np.array([["a"] * 8]), "weights must be real numbers"),
    ],
)
def test_weights_that_cannot_be_are_refused(weights, message):
    index = HammingIndex(8)
    index.add(BinaryCodes.from_bits(np.eye(8)))
    with pytest.raises(InputError, match=message):
        index.search_real(weights, 1)


def test_ties_between_parts_go_by_id(rng):
    bits, weights = rng.integers(0, 2, (1000, 6)), rng.integers(-1, 2, (4, 6)).astype(float)
    ids = rng.permutation(1000)
    index = HammingIndex(6)
    for rows in (slice(0, 900), slice(900, 990), slice(990, 1000)):  # too unlike to be merged
        index.add(BinaryCodes.from_bits(bits[rows]), ids[rows])
    assert len(index._current().parts) > 1
    order = np.argsort(ids)
    expected = brute_force(bits[order].astype(bool), ids[order], weights, 200)
    scores, answer_ids = index.search_real(weights, 200)
    np.testing.assert_array_equal(scores, expected[0])
    np.testing.assert_array_equal(answer_ids, expected[1])


def test_places_left_over_are_filled_whatever_the_ids():
    index = HammingIndex(8)
    index.add(BinaryCodes.from_bits(np.eye(8)), np.arange(8) * 5 + 2)
    assert index.search_real(np.ones((1, 8)), 4, allowed=[17])[1].tolist() == [[17, -1, -1, -1]]


MEMORY = """
import sys, threading, time
import numpy as np
from rankbits.index import HammingIndex

def anonymous_kb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

def watch():
    global peak
    while not is_done:
        peak = max(peak, anonymous_kb())
        time.sleep(0.001)

index = HammingIndex.load(sys.argv[1])
weights = np.random.default_rng(0).standard_normal((300, 64))
index.search_real(weights[:1], 1, n_threads=2)  # what is imported late, and threads that stay
before = peak = anonymous_kb()
is_done = False
watcher = threading.Thread(target=watch)
watcher.start()
scores, ids = index.search_real(weights, 10, n_threads=2)
is_done = True
watcher.join()
assert (np.diff(scores) <= 0).all() and (ids >= 0).all()
print(peak - before)
"""


@pytest.mark.unsanitized
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc/self/status")
def test_a_mapped_index_is_searched_without_being_read_into_memory(rng, tmp_path):
    """Three million codes are 24 MB, so that an index larger than memory needs no more either."""
    index = HammingIndex(64)
    index.add(rng.integers(0, 256, (3_000_000, 8), np.uint8))
    index.save(tmp_path / "index")
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path / "index")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert int(done.stdout) <= 8 * 1024
