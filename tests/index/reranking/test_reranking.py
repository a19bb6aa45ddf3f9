"""Re-ranking: with a pool of all items it is the brute-force ranking by score."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits import BinaryCodes
from rankbits.errors import FileFormatError, InputError
from rankbits.index import HammingIndex, asymmetric, vectors, weighted_bits
from rankbits.index.reranking import bits as _rescore
from rankbits.index.reranking import vectors as _vectors


def ranked(scores, ids, k):
    """The k first of each row of scores by (score, id)."""
    lines = []
    for row in scores:
        pairs = sorted(zip(row, ids, strict=True))[:k]
        lines.append(pairs)
    return [[s for s, _ in line] for line in lines], [[i for _, i in line] for line in lines]


def differing(queries, items, weights):
    """Weighted Hamming distances, bit by bit."""
    return [
        [
            sum(w for w, a, b in zip(line, query, item, strict=True) if a != b)
            for item in items.tolist()
        ]
        for query, line in zip(queries.tolist(), weights, strict=True)
    ]


def signed(logits, items):
    """-<logits, code as +-1>, bit by bit."""
    return [
        [
            -sum(v if bit else -v for v, bit in zip(line, item, strict=True))
            for item in items.tolist()
        ]
        for line in logits.tolist()
    ]


def by_vectors(queries, items, metric):
    """Scores of every pair from whole-number vectors."""
    lines = []
    for q in queries.tolist():
        line = []
        for x in items.tolist():
            dot = sum(a * b for a, b in zip(q, x, strict=True))
            lengths = math.sqrt(sum(a * a for a in q)) * math.sqrt(sum(b * b for b in x))
            line.append(
                {
                    "l2": math.sqrt(sum((a - b) ** 2 for a, b in zip(q, x, strict=True))),
                    "ip": -dot,
                    "cosine": 1 - dot / lengths if lengths else 1.0,
                }[metric]
            )
        lines.append([float(np.float32(score)) for score in line])
    return lines


def filled(bits, ids=None, n_parts=1):
    """An index with these bits in several parts."""
    index = HammingIndex(bits.shape[1], kind="scan")
    ids = np.arange(len(bits)) if ids is None else np.asarray(ids)
    for rows in np.array_split(np.arange(len(bits)), n_parts):
        if len(rows):
            index.add(BinaryCodes.from_bits(bits[rows]), ids[rows])
    return index


def assert_equal(found, wanted):
    scores, ids = found
    assert (scores.dtype, ids.dtype) == (np.float32, np.int64)
    assert (scores.tolist(), ids.tolist()) == wanted
    assert not np.signbit(scores[scores == 0]).any()


def cases(seed, n=None, n_bits=None):
    """Random bits of few queries and items, some of them equal, and ids out of order."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 60) if n is None else n
    n_bits = rng.integers(1, 30) if n_bits is None else n_bits
    items = rng.integers(0, 2, (n, n_bits))[rng.integers(0, n, n)]
    ids = rng.permutation(10 * n)[:n]
    return rng, rng.integers(0, 2, (rng.integers(1, 5), n_bits)), items, ids


@given(st.integers(0, 2**32), st.booleans(), st.integers(1, 70), st.integers(1, 3))
def test_weighted_bits_over_all_items_is_the_brute_force_ranking(seed, is_each, k, n_parts):
    rng, queries, items, ids = cases(seed)
    weights = rng.integers(0, 9, queries.shape if is_each else queries.shape[1]) / 4
    found = filled(items, ids, n_parts).search(
        BinaryCodes.from_bits(queries), k, rerank=weighted_bits(weights), pool=max(k, len(items))
    )
    lines = np.broadcast_to(weights, queries.shape).tolist()
    assert_equal(found, ranked(differing(queries, items, lines), ids.tolist(), k))


@given(st.integers(0, 2**32), st.integers(1, 70), st.integers(1, 3))
def test_asymmetric_over_all_items_is_the_brute_force_ranking(seed, k, n_parts):
    rng, queries, items, ids = cases(seed)
    logits = rng.integers(-9, 10, queries.shape) / 4
    found = filled(items, ids, n_parts).search(
        BinaryCodes.from_logits(logits), k, rerank=asymmetric(logits), pool=max(k, len(items))
    )
    assert_equal(found, ranked(signed(logits, items), ids.tolist(), k))


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", ">f4"])
def test_vectors_over_all_items_are_the_brute_force_ranking(tmp_path, metric, dtype):
    rng, queries, items, ids = cases(5, n=50)
    low = 0 if dtype == "uint8" else -9
    x, q = rng.integers(low, 10, (50, 7)), rng.integers(-9, 10, (len(queries), 7))
    x[3] = 0  # its inner products are 0 too
    np.save(tmp_path / "x.npy", x.astype(dtype))
    scores, wanted_ids = ranked(by_vectors(q, x, metric), ids.tolist(), 50)
    for source in (x.astype(dtype), tmp_path / "x.npy", str(tmp_path / "x.npy")):
        got, got_ids = filled(items, ids).search(
            BinaryCodes.from_bits(queries), 50, rerank=vectors(source, q, metric, ids), pool=50
        )
        np.testing.assert_allclose(got, scores, rtol=0, atol=0 if metric != "cosine" else 1e-6)
        if metric != "cosine":
            assert got_ids.tolist() == wanted_ids
        assert all(sorted(row) == sorted(ids) for row in got_ids.tolist())
        assert not np.signbit(got[got == 0]).any()


def test_without_ids_a_row_of_vectors_is_an_id(rng):
    x = rng.integers(-9, 10, (30, 4)).astype(np.float32)
    index = filled((x > 0).astype(int))
    index.remove([4, 17])
    _, ids = index.search(
        BinaryCodes.from_logits(x[:2]), 1, rerank=vectors(x, x[:2], "l2"), pool=30
    )
    assert ids.tolist() == [[0], [1]]


@pytest.mark.parametrize("pool", [120, 250])
def test_only_the_pool_nearest_by_hamming_distance_are_scored(rng, pool):
    bits = rng.integers(0, 2, (300, 12))
    logits = rng.standard_normal((3, 12))
    index, codes = filled(bits), BinaryCodes.from_logits(logits)
    scores, ids = index.search(codes, 12, rerank=asymmetric(logits), pool=pool)
    _, nearest = index.search(codes, pool)
    for q, near in enumerate(np.sort(nearest, axis=1)):
        wanted = ranked(signed(logits[q : q + 1], bits[near]), near.tolist(), 12)
        np.testing.assert_allclose(scores[q], wanted[0][0], atol=1e-6)
        assert ids[q].tolist() == wanted[1][0]


class Own:
    """Somebody's own score: the id, backwards."""

    def require(self, queries, n_bits):
        self.seen = len(queries), n_bits

    def distances(self, candidates):
        self.n_scored = candidates.nearest.counts.tolist()
        return -candidates.nearest.ids.astype(float)


@pytest.mark.parametrize(("k", "n_scored"), [(1, 100), (10, 100), (11, 110), (40, 300)])
def test_without_a_pool_ten_times_k_and_at_least_a_hundred_are_scored(rng, k, n_scored):
    own, index = Own(), filled(rng.integers(0, 2, (300, 12)))
    index.search(BinaryCodes.from_bits(rng.integers(0, 2, (2, 12))), k, rerank=own)
    assert own.n_scored == [n_scored] * 2


def test_scores_that_are_equal_as_they_are_returned_go_by_id():
    weigh = weighted_bits([1.0, 1.0 + 2.0**-40])
    index = filled(np.array([[0, 1], [1, 0]]))
    assert_equal(
        index.search(BinaryCodes.from_bits([[0, 0]]), 2, rerank=weigh), ([[1.0, 1.0]], [[0, 1]])
    )


def test_the_best_of_a_large_pool_are_those_of_a_whole_sort(rng):
    bits, logits = rng.integers(0, 2, (3000, 30)), rng.integers(-500, 500, (2, 30)) / 4
    wanted = -logits @ (2 * bits - 1).T
    found = filled(bits).search(
        BinaryCodes.from_logits(logits), 300, rerank=asymmetric(logits), pool=3000
    )
    order = np.argsort(wanted, axis=1, kind="stable")[:, :300]
    assert_equal(found, (np.take_along_axis(wanted, order, axis=1).tolist(), order.tolist()))


def test_complete_ties_bring_all_of_the_last_distance_into_the_pool():
    bits = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
    query, weigh = BinaryCodes.from_bits([[0, 0, 0]]), weighted_bits([3.0, 2.0, 1.0])
    index = filled(bits)
    assert_equal(index.search(query, 1, rerank=weigh, pool=1), ([[3.0]], [[0]]))
    assert_equal(index.search(query, 1, "complete", rerank=weigh, pool=1), ([[1.0]], [[2]]))


def test_a_filter_holds_for_the_pool(rng):
    bits = rng.integers(0, 2, (40, 9))
    logits = rng.integers(-9, 10, (2, 9)) / 4
    allowed = np.arange(1, 40, 3)
    found = filled(bits).search(
        BinaryCodes.from_logits(logits), 20, allowed=allowed, rerank=asymmetric(logits)
    )
    scores, ids = ranked(signed(logits, bits[allowed]), allowed.tolist(), 20)
    n_left = 20 - len(allowed)
    scores, ids = [s + [math.inf] * n_left for s in scores], [i + [-1] * n_left for i in ids]
    assert_equal(found, (scores, ids))


def test_equal_codes_tie_whatever_the_weights_and_the_blocks(rng, monkeypatch):
    bits = np.repeat(rng.integers(0, 2, (5, 77)), 8, axis=0)
    queries, weights = rng.integers(0, 2, (4, 77)), rng.random((4, 77))
    index, codes = filled(bits), BinaryCodes.from_bits(queries)
    whole = index.search(codes, 40, rerank=weighted_bits(weights))
    monkeypatch.setattr(_rescore, "_BLOCK_CELLS", 30)
    one_by_one = [
        index.search(codes[q], 40, rerank=weighted_bits(weights[q : q + 1])) for q in range(4)
    ]
    assert_equal(
        index.search(codes, 40, rerank=weighted_bits(weights)),
        tuple(part.tolist() for part in whole),
    )
    assert_equal(whole, tuple(np.concatenate(part).tolist() for part in zip(*one_by_one)))  # noqa: B905
    groups = whole[1].reshape(4, 5, 8)
    assert (np.diff(groups) == 1).all()
    expected = np.sort(differing(queries, bits, weights.tolist()), axis=1)
    np.testing.assert_allclose(whole[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["auto", "scan", "mih", "ivf"])
def test_asymmetric_scores_all_items_where_that_is_as_fast_as_a_pool(rng, kind):
    bits, logits = rng.integers(0, 2, (3000, 12)), rng.integers(-99, 99, (3, 12)) / 4
    index = HammingIndex(12, kind)
    index.add(BinaryCodes.from_bits(bits))
    answer = index.search(BinaryCodes.from_logits(logits), 5, rerank=asymmetric(logits))
    assert_equal(answer, ranked(signed(logits, bits), list(range(3000)), 5))


def test_asymmetric_scores_a_pool_where_all_items_would_take_longer(rng, monkeypatch):
    monkeypatch.setattr(asymmetric, "items_per_candidate", 2)
    bits, logits = rng.integers(0, 2, (3000, 24)), rng.standard_normal((3, 24)) ** 5
    index, codes = filled(bits), BinaryCodes.from_logits(logits)
    answer = index.search(codes, 40, rerank=asymmetric(logits))
    pooled = index.search(codes, 40, rerank=asymmetric(logits), pool=400)
    assert_equal(answer, tuple(part.tolist() for part in pooled))
    assert index.search_real(logits, 40)[1].tolist() != answer[1].tolist()


def test_logits_whose_sum_is_beyond_float32_are_scored_as_infinity():
    logits, index = np.full((1, 8), 1e38), filled(np.ones((3, 8), int))
    scores, ids = index.search(BinaryCodes.from_logits(logits), 2, rerank=asymmetric(logits))
    assert np.isneginf(scores).all()
    assert ids.tolist() == [[0, 1]]


def test_vectors_in_small_blocks_score_the_same(rng, monkeypatch):
    x, q = rng.standard_normal((90, 6)), rng.standard_normal((5, 6))
    index = filled((x > 0).astype(int))
    for metric in ("l2", "ip", "cosine"):
        score = vectors(x, q, metric)
        monkeypatch.setattr(_vectors, "_BLOCK_CELLS", 1 << 18)
        whole = index.search(BinaryCodes.from_logits(q), 20, rerank=score)
        monkeypatch.setattr(_vectors, "_BLOCK_CELLS", 40)
        cut = index.search(BinaryCodes.from_logits(q), 20, rerank=score)
        assert_equal(cut, tuple(part.tolist() for part in whole))


class Watched(np.ndarray):
    """An array that notes which rows are read."""

    def __array_finalize__(self, parent):
        self.seen = getattr(parent, "seen", None)

    def __getitem__(self, rows):
        self.seen.append(np.array(rows))
        return super().__getitem__(rows)


def test_only_candidate_rows_are_read_in_ascending_order(rng, monkeypatch):
    x = rng.standard_normal((500, 6)).astype(np.float32)
    index, q = filled((x > 0).astype(int)), x[:3]
    _, nearest = index.search(BinaryCodes.from_logits(q), 100)
    x[np.setdiff1d(np.arange(500), nearest)] = np.nan  # would be refused if read
    score = vectors(x, q)
    score._source = x.view(Watched)
    score._source.seen = []
    monkeypatch.setattr(_vectors, "_BLOCK_CELLS", 60)
    index.search(BinaryCodes.from_logits(q), 5, rerank=score)
    read = np.concatenate(score._source.seen)
    assert len(score._source.seen) > 10
    assert (np.diff(read) >= 0).all()
    assert set(read.tolist()) == set(nearest.ravel().tolist())


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_candidates_that_are_not_finite_are_refused(rng, value):
    x = rng.standard_normal((20, 4))
    index, q = filled((x > 0).astype(int)), x[:1].copy()
    x[7, 2] = value
    with pytest.raises(InputError, match="source must be finite, row 7"):
        index.search(BinaryCodes.from_logits(q), 1, rerank=vectors(x, q, "l2"))


def test_fewer_than_k_items_leave_infinity_and_minus_one():
    index = HammingIndex(3, kind="scan")
    query, logits = BinaryCodes.from_bits([[1, 0, 1]]), np.array([[1.0, -2.0, 3.0]])
    assert_equal(index.search(query, 2, rerank=asymmetric(logits)), ([[]], [[]]))
    index.add(query, [9])
    assert_equal(index.search(query, 2, rerank=asymmetric(logits)), ([[-6.0]], [[9]]))
    index.add(query, [11])
    one = index.search(query, 2, rerank=asymmetric(logits), allowed=[11])
    assert_equal(one, ([[-6.0, math.inf]], [[11, -1]]))
    scores, ids = index.search(query[:0], 2, rerank=asymmetric(logits[:0]))
    assert scores.shape == ids.shape == (0, 2)


def test_huge_and_tiny_vectors_do_not_warn():
    x = np.array([[1e300, 0.0], [1e-300, 1e-300], [0.0, 1e300]])
    index, query = filled(np.array([[1, 0], [1, 1], [0, 1]])), BinaryCodes.from_bits([[1, 1]])
    q = np.array([[1e-200, 1e-200]])
    scores, ids = index.search(query, 3, rerank=vectors(x, q, "cosine"))
    assert ids.tolist() == [[1, 0, 2]]
    np.testing.assert_allclose(scores, [[0, 1 - 0.5**0.5, 1 - 0.5**0.5]], atol=1e-7)
    scores, ids = index.search(query, 3, rerank=vectors(x, q, "l2"))
    assert (scores.tolist(), ids.tolist()) == ([[0.0, math.inf, math.inf]], [[1, 0, 2]])
    scores, _ = index.search(query, 3, rerank=vectors(x / 1e200, q, "l2"))
    assert scores.tolist() == [[0.0, math.inf, math.inf]]  # 1e100 is beyond float32


def test_a_score_of_ones_own_is_called():
    own = Own()
    index = filled(np.eye(4, dtype=int))
    found = index.search(BinaryCodes.from_bits([[0] * 4] * 2), 2, rerank=own)
    assert_equal(found, ([[-3.0, -2.0]] * 2, [[3, 2]] * 2))
    assert own.seen == (2, 4)


def test_a_score_that_is_nan_is_refused(monkeypatch):
    monkeypatch.setattr(Own, "distances", lambda self, c: np.full(len(c.nearest.ids), np.nan))
    with pytest.raises(InputError, match="none of them NaN"):
        filled(np.eye(4, dtype=int)).search(BinaryCodes.from_bits([[1] * 4]), 2, rerank=Own())


X = np.ones((6, 3), np.float32)
MAKING = {
    "negative weight": (lambda: weighted_bits([1, -1]), "weights must be 0 or more, got -1"),
    "infinite weight": (lambda: weighted_bits([1, np.inf]), "weights must be finite"),
    "weights of words": (lambda: weighted_bits(["a"]), "weights must be real numbers of shape"),
    "flat logits": (lambda: asymmetric([1.0, 2.0]), r"logits must be real .* \(queries, b\)"),
    "NaN logit": (lambda: asymmetric([[np.nan]]), "logits must be finite"),
    "metric": (lambda: vectors(X, X, "cos"), "did you mean 'cosine'"),
    "flat source": (lambda: vectors(X[0], X), r"source must be an array \(n, d\)"),
    "source of int64": (lambda: vectors(X.astype(int), X), "got int64"),
    "no file": (lambda: vectors("absent.npy", X), "there is no absent.npy"),
    "other width": (lambda: vectors(X, X[:, :2]), r"queries must be numbers of shape \(n, 3\)"),
    "NaN query": (lambda: vectors(X, X * np.nan), "queries must be finite"),
    "few ids": (lambda: vectors(X, X, ids=[1, 2]), "2 ids for 6 rows"),
    "ids twice": (lambda: vectors(X, X, ids=[1] * 6), "1 comes more than once"),
}


@pytest.mark.parametrize("case", MAKING)
def test_what_cannot_score_is_refused_when_it_is_made(case):
    make, message = MAKING[case]
    with pytest.raises(InputError, match=message):
        make()


def test_a_file_that_is_no_npy_is_named(tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00")
    with pytest.raises(FileFormatError, match=r"x\.npy is not a readable \.npy file"):
        vectors(path, X)


SEARCHING = {
    "pool alone": ({"pool": 5}, "pool must come with rerank"),
    "small pool": ({"pool": 2, "rerank": asymmetric(np.ones((1, 4)))}, "pool must be .* >= 3"),
    "no score": ({"rerank": "l2"}, "rerank must be weighted_bits"),
    "few weights": ({"rerank": weighted_bits([1, 2])}, r"weights must have 4 bits .* \(1, 2\)"),
    "other logits": ({"rerank": asymmetric(np.ones((2, 4)))}, "each of 1 queries"),
    "other queries": ({"rerank": vectors(X, X)}, "6 for 1 codes"),
    "no row": ({"rerank": vectors(X, X[:1])}, "6 has none among 6 rows"),
    "no id": ({"rerank": vectors(X, X[:1], ids=range(1, 7))}, "0 has none among 6 rows"),
    "no rows": ({"rerank": vectors(X[:0], X[:1], ids=[])}, "0 has none among 0 rows"),
}


@pytest.mark.parametrize("case", SEARCHING)
def test_a_search_refuses_what_does_not_fit(case):
    options, message = SEARCHING[case]
    index = filled(np.zeros((7, 4), int))
    with pytest.raises(InputError, match=message):
        index.search(BinaryCodes.from_bits([[0, 0, 0, 0]]), 3, **options)


def test_one_logit_row_is_not_shared_by_several_queries():
    index = filled(np.zeros((7, 4), int))
    with pytest.raises(InputError, match="each of 2 queries"):
        index.search(BinaryCodes.from_bits([[0] * 4] * 2), 3, rerank=asymmetric(np.ones((1, 4))))
