"""Factors: two bytes of each item that correct its score, wherever the item lies."""

import pickle
import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits import BinaryCodes, methods
from rankbits.errors import FileFormatError, InputError
from rankbits.index import Collection, HammingIndex, asymmetric, real_queries
from rankbits.index.disk import tables


@pytest.fixture(autouse=True, scope="module")
def threads_for_few_items():
    """Work for several threads is shared however little it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(real_queries, "_WORTH_A_THREAD", 1)
        yield


def binary_fractions(rng, shape, low=-(2**10)):
    """Numbers of few bits, so that float64 holds their products and sums exactly."""
    return rng.integers(low, 2**10, shape) / 2**8


def drawn_correction(rng):
    return np.stack([*binary_fractions(rng, (2, 256), 0), 64 * binary_fractions(rng, 256)])


def brute_force(bits, factors, ids, weights, correction, k):
    """Corrected scores, rounded to float32, ordered by (-score, id)."""
    first, second = factors.T
    products = weights @ (2.0 * bits - 1).T
    corrected = products * (correction[0][first] * correction[1][second]) + correction[2][first]
    scores = corrected.astype(np.float32)
    order = np.lexsort((np.broadcast_to(ids, scores.shape), -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), ids[order]


def check(index, items, weights, correction, k, **settings):
    bits, factors, ids = items
    expected = brute_force(bits, factors, ids, weights, correction, k)
    scores, answer_ids = index.search_real(weights, k, correction=correction, **settings)
    np.testing.assert_array_equal(scores, expected[0])
    np.testing.assert_array_equal(answer_ids, expected[1])


@given(st.data())
def test_corrected_scores_rank_as_brute_force_does(dispatch, data):
    n_bits = data.draw(st.one_of(st.integers(1, 140), st.integers(1, 4080)))
    most = min(9000, 2**19 // n_bits)
    n = data.draw(st.one_of(st.integers(1, min(200, most)), st.integers(1, most)))
    n_queries, n_threads = data.draw(st.sampled_from([1, 2, 17])), data.draw(st.integers(1, 3))
    k = data.draw(st.one_of(st.integers(1, 20), st.integers(1, 2 * n)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    bits, ids = rng.integers(0, 2, (n, n_bits)), np.arange(n)
    low, high = data.draw(st.sampled_from([(0, 256), (100, 140), (7, 8)]))
    factors = rng.integers(low, high, (n, 2), np.uint8)
    weights, correction = binary_fractions(rng, (n_queries, n_bits)), drawn_correction(rng)
    if data.draw(st.booleans()):
        correction[:2] = np.round(correction[:2])  # zeros, and ties
    index = HammingIndex(n_bits, factors=True)
    index.add(BinaryCodes.from_bits(bits), factors=factors)
    check(index, (bits, factors, ids), weights, correction, k, n_threads=n_threads)
    is_allowed = rng.random(n) < 0.3
    if is_allowed.any():
        some = bits[is_allowed], factors[is_allowed], ids[is_allowed]
        n_there = int(is_allowed.sum())
        check(index, some, weights, correction, min(k, n_there), allowed=ids[is_allowed])


@pytest.fixture
def items(rng):
    ids = np.sort(rng.permutation(2000)[:600])
    return rng.integers(0, 2, (600, 21)), rng.integers(0, 256, (600, 2), np.uint8), ids


def fill(index, items):
    """In several parts, some items replaced and some removed again."""
    bits, factors, ids = items
    for rows in np.array_split(np.random.default_rng(0).permutation(600), 5):
        wrong = factors[rows] ^ np.uint8(1)
        index.add(BinaryCodes.from_bits(1 - bits[rows]), ids[rows], factors=wrong)
    index.upsert(BinaryCodes.from_bits(bits), ids, factors=factors)
    index.remove(ids[::7])
    is_left = np.arange(600) % 7 > 0
    return bits[is_left], factors[is_left], ids[is_left]


@pytest.mark.parametrize("kind", ["auto", "scan", "mih", "ivf"])
def test_codes_factors_and_searches_by_distance_are_as_without(items, rng, kind):
    index, plain = HammingIndex(21, kind, factors=True), HammingIndex(21, kind)
    left = fill(index, items)
    plain.add(BinaryCodes.from_bits(left[0]), left[2])
    assert (index.n_bits, index.has_factors, plain.has_factors) == (21, True, False)
    assert index.codes() == plain.codes()
    np.testing.assert_array_equal(index.factors(), left[1])
    np.testing.assert_array_equal(index.factors(left[2][[5, 3]]), left[1][[5, 3]])
    queries = BinaryCodes.from_bits(rng.integers(0, 2, (4, 21)))
    logits = binary_fractions(rng, (4, 21))
    before = index.n_bytes
    for call in (
        lambda one: (
            one.search(queries, 9, n_probes=99) if kind == "ivf" else one.search(queries, 9)
        ),
        lambda one: one.search(queries, 9, rerank=asymmetric(logits)),
        lambda one: one.search(queries, 9, rerank=asymmetric(logits), pool=600),
        lambda one: one.search_real(logits, 9),
    ):
        for ours, expected in zip(call(index), call(plain), strict=True):
            np.testing.assert_array_equal(ours, expected)
    assert index.n_bytes > before  # the copy of the codes that searches by distance read


def test_an_index_comes_back_from_a_file_and_from_a_pickle(items, rng, tmp_path):
    weights, correction = binary_fractions(rng, (3, 21)), drawn_correction(rng)
    index = HammingIndex(21, factors=True)
    left = fill(index, items)
    index.save(tmp_path / "index")
    for again in (
        HammingIndex.load(tmp_path / "index"),
        HammingIndex.load(tmp_path / "index", mmap=False),
        pickle.loads(pickle.dumps(index)),
    ):
        assert (again.n_bits, again.has_factors) == (21, True)
        check(again, left, weights, correction, 50)
        again.compact()
        check(again, left, weights, correction, 50)


def test_a_collection_keeps_factors_in_its_database_and_in_its_files(items, rng, tmp_path):
    weights, correction = binary_fractions(rng, (3, 21)), drawn_correction(rng)
    with Collection.create(tmp_path / "items", 21, factors=True) as collection:
        left = fill(collection, items)
        check(collection, left, weights, correction, 50)
    with Collection.open(tmp_path / "items", writable=True) as collection:
        assert (collection.info()["format"], collection.info()["factors"]) == (4, True)
        check(collection, left, weights, correction, 50)
        collection.seal()
        check(collection, left, weights, correction, 50)
        collection.snapshot(tmp_path / "copy")
        assert collection.check()["bits"] == 21
    with Collection.open(tmp_path / "copy") as reader:
        check(reader, left, weights, correction, 50)
        np.testing.assert_array_equal(reader.factors(), left[1])


def test_saving_over_a_collection_changes_its_format_both_ways(items, tmp_path):
    plain, index = HammingIndex(21), HammingIndex(21, factors=True)
    plain.add(BinaryCodes.from_bits(items[0]))
    index.add(BinaryCodes.from_bits(items[0]), factors=items[1])
    plain.save(tmp_path / "items")
    with Collection.open(tmp_path / "items") as reader:
        for one, version in ((index, 4), (plain, 3), (index, 4)):
            one.save(tmp_path / "items")
            assert reader.info()["format"] == version
            assert (reader.n_bits, reader.has_factors) == (21, version == 4)
            assert reader.codes() == one.codes()


def test_rabitq_finds_more_with_its_factors(rng):
    mixing = rng.standard_normal((32, 32)) / np.sqrt(1 + np.arange(32))[:, None]
    x, queries = rng.standard_normal((2, 3000, 32)) @ mixing
    queries = queries[:50]
    hasher = methods.get("rabitq", n_bits=32, random_state=0).fit(x)
    index = HammingIndex(32, factors=True)
    index.add(hasher.encode(x), factors=hasher.factors(x))
    weights = hasher.project_queries(queries)
    nearest = np.argsort(np.square(queries[:, None] - x).sum(axis=2), axis=1)[:, :10]

    def recall(**settings):
        ids = index.search_real(weights, 50, **settings)[1]
        return np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids, nearest, strict=True)])

    assert recall(correction=hasher.correction()) > recall() + 0.05


CODES, FACTORS = BinaryCodes.from_bits(np.eye(8)), np.zeros((8, 2), np.uint8)


@pytest.mark.parametrize("factors", [None, FACTORS[:7], FACTORS.astype(np.int64), FACTORS[:, :1]])
def test_factors_must_be_two_bytes_for_each_code(factors):
    index = HammingIndex(8, factors=True)
    with pytest.raises(InputError, match=r"factors must be uint8 of shape \(8, 2\)"):
        index.add(CODES, factors=factors)
    assert len(index) == 0


def test_factors_belong_to_an_index_that_was_made_for_them():
    index = HammingIndex(8)
    with pytest.raises(InputError, match="factors must come to an index that was made with"):
        index.add(CODES, factors=FACTORS)
    with pytest.raises(InputError, match="factors need an index that was made with"):
        index.factors()
    with pytest.raises(InputError, match="correction must come with an index that was made with"):
        index.search_real(np.ones((1, 8)), 1, correction=np.ones((3, 256)))
    with pytest.raises(InputError, match="n_bits must be"):
        HammingIndex(4081, factors=True)


@pytest.mark.parametrize(
    ("correction", "message"),
    [
        (np.ones((2, 256)), r"correction must be real numbers of shape \(3, 256\)"),
        (np.full((3, 256), np.nan), "correction must be finite"),
        (-np.ones((3, 256)), "correction must multiply by 0 or more, got -1"),
        (np.full((3, 256), 1e30), "correction must give scores that float32 holds"),
    ],
)
def test_corrections_that_cannot_be_are_refused(correction, message):
    index = HammingIndex(8, factors=True)
    index.add(CODES, factors=FACTORS)
    with pytest.raises(InputError, match=message):
        index.search_real(np.ones((1, 8)), 1, correction=correction)


@pytest.mark.parametrize(("factors", "version"), [(False, 4), (True, 3)])
def test_the_number_of_the_format_cannot_be_mistaken(tmp_path, factors, version):
    Collection.create(tmp_path / "items", 32, factors=factors).close()
    with sqlite3.connect(tmp_path / "items" / "collection.sqlite") as database:
        database.execute(f"PRAGMA user_version = {version}")
    database.close()
    with pytest.raises(FileFormatError, match="state does not match its checksum"):
        Collection.open(tmp_path / "items")


def test_codes_that_are_shorter_than_their_factors_are_refused(tmp_path):
    Collection.create(tmp_path / "items", 1, factors=True).close()
    with sqlite3.connect(tmp_path / "items" / "collection.sqlite") as database:
        row = list(database.execute("SELECT * FROM state").fetchone())
        row[1] = 16
        row[-1] = tables.crc_of((*row[:-1], "factors"))
        database.execute("REPLACE INTO state VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    database.close()
    with pytest.raises(FileFormatError, match="would have 16 bits with their factors"):
        Collection.open(tmp_path / "items")
