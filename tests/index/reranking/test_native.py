"""Kernels of re-ranking: the same to the last bit whatever the threads and the instruction set."""

import numpy as np
import pytest

from rankbits import _native
from rankbits.index.reranking.vectors import SIMILARITIES

DTYPES = ("float16", "float32", "float64", "int8", "uint8")


def vectors_of(dtype, n, d, seed=0):
    rng = np.random.default_rng(seed)
    if dtype in ("int8", "uint8"):
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, (n, d)).astype(dtype)
    return (rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, (n, 1))).astype(dtype)


def scores_of(source, rows, numbers, queries, metric, n_threads=1):
    scores = np.empty(len(rows))
    view = source.view(np.uint16) if source.dtype == np.float16 else source
    bad = _native.score_vectors(view, rows, numbers, queries, metric, scores, n_threads)
    return scores, bad


@pytest.mark.parametrize("metric", range(3))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [0, 1, 7, 8, 9, 100, 384])
def test_scores_are_those_of_numpy_and_the_same_everywhere(dtype, metric, d):
    rng = np.random.default_rng(d)
    source, queries = vectors_of(dtype, 50, d), vectors_of("float64", 6, d, 1)
    if d:
        source[3] = 0
    if SIMILARITIES[metric] == "cosine" and d:
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    rows, numbers = np.sort(rng.integers(0, 50, 900)), rng.integers(0, 6, 900)
    x, q = source[rows].astype(float), queries[numbers]
    lengths = np.linalg.norm(x, axis=1)
    expected = {
        "l2": np.linalg.norm(x - q, axis=1),
        "ip": -(x * q).sum(axis=1),
        "cosine": 1 - (x * q).sum(axis=1) / np.where(lengths > 0, lengths, 1),
    }[SIMILARITIES[metric]]
    first = None
    for level in _native.dispatch_levels():
        for n_threads in (1, 2, 5):
            with _native.dispatched(level):
                scores, bad = scores_of(source, rows, numbers, queries, metric, n_threads)
            first = scores if first is None else first
            assert bad == -1
            assert scores.tobytes() == first.tobytes()
    np.testing.assert_allclose(first, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("metric", range(3))
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pair_has_the_same_score_alone_and_among_all_pairs_of_its_row(dispatch, dtype, metric):
    source, queries = vectors_of(dtype, 60, 13), vectors_of("float64", 23, 13, 1)
    rows, numbers = np.divmod(np.random.default_rng(0).permutation(60 * 23), 23)
    together, _ = scores_of(source, rows, numbers, queries, metric)
    alone = [
        scores_of(source, rows[i : i + 1], numbers[i : i + 1], queries, metric)[0][0]
        for i in range(len(rows))
    ]
    assert together.tolist() == alone


@pytest.mark.parametrize("level", _native.dispatch_levels())
def test_every_finite_half_is_read_exactly(level):
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)][:, None]
    rows = np.arange(len(halves))
    with _native.dispatched(level):
        scores, bad = scores_of(halves, rows, np.zeros_like(rows), np.ones((1, 1)), 1)
    assert bad == -1
    np.testing.assert_array_equal(-scores, halves[:, 0].astype(float))


@pytest.mark.parametrize("metric", range(3))
@pytest.mark.parametrize("dtype", DTYPES[:3])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_lowest_row_that_is_not_finite_is_told(dispatch, dtype, metric, value):
    source = vectors_of(dtype, 40, 11)
    source[[7, 21, 30], [10, 0, 4]] = value
    rows = np.repeat(np.arange(5, 40), 20)
    queries = np.zeros((2, 11))
    for n_threads in (1, 3):
        _, bad = scores_of(source, rows, rows % 2, queries, metric, n_threads)
        assert bad == 7


def test_rows_that_are_not_candidates_are_not_read():
    source = vectors_of("float32", 40, 11)
    source[7] = np.nan
    rows = np.array([6, 8, 39])
    assert scores_of(source, rows, np.zeros(3, int), np.zeros((1, 11)), 0)[1] == -1


def test_vectors_of_any_size_have_a_cosine(dispatch):
    source = np.array([[3e300, 4e300], [3e-300, 4e-300], [5e-324, 0.0], [0.0, 0.0]])
    queries, rows = np.array([[1.0, 0.0]]), np.arange(4)
    scores, bad = scores_of(source, rows, np.zeros(4, int), queries, 2)
    assert bad == -1
    np.testing.assert_allclose(scores, [0.4, 0.4, 0.0, 1.0], atol=1e-15)


def bits_of(packed, n_bits):
    return np.unpackbits(packed, axis=1)[:, :n_bits]


@pytest.mark.parametrize("n_bits", [1, 8, 13, 64, 200])
def test_sums_over_bytes_are_sums_over_bits(dispatch, n_bits):
    rng, width = np.random.default_rng(n_bits), -(-n_bits // 8)
    if_set, if_clear = rng.integers(-50, 50, (2, 4, n_bits)) / 8
    masks, codes = (rng.integers(0, 256, (n, width), np.uint8) for n in (4, 60))
    offsets, queries = np.array([0, 10, 10, 45, 60]), np.repeat(np.arange(4), [10, 0, 35, 15])
    is_set = bits_of(codes ^ masks[queries], n_bits)
    expected = np.where(is_set, if_set[queries], if_clear[queries]).sum(axis=1)
    for n_threads in (1, 3):
        scores = np.empty(60)
        _native.score_bytes(if_set, if_clear, masks, codes, offsets, scores, n_threads)
        np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_best_go_by_rounded_score_then_id(k, n_threads):
    rng = np.random.default_rng(k)
    counts = np.array([30, 0, 3, 500])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    scores = rng.integers(-3, 4, offsets[-1]) * (1 + 1e-12 * rng.random(offsets[-1])) * 1.0
    scores[:4] = [-0.0, 0.0, 1e300, -1e300]
    ids = rng.permutation(10_000)[: offsets[-1]]
    best, best_ids = np.full((4, k), np.inf, np.float32), np.full((4, k), -1)
    assert _native.best_scores(scores, ids, offsets, best, best_ids, n_threads)
    for q in range(4):
        part = slice(offsets[q], offsets[q + 1])
        with np.errstate(over="ignore"):
            rounded = (scores[part].astype(np.float32) + np.float32(0)).tolist()
        pairs = sorted(zip(rounded, ids[part].tolist(), strict=True))[:k]
        pairs += [(np.inf, -1)] * (k - len(pairs))
        assert list(zip(best[q].tolist(), best_ids[q].tolist(), strict=True)) == pairs
    assert not np.signbit(best[best == 0]).any()
    scores[-1] = np.nan
    assert not _native.best_scores(scores, ids, offsets, best, best_ids, n_threads)


SOURCE, ROWS = np.ones((5, 3), np.float32), np.arange(2)
ONE, SCORES = np.ones((1, 3)), np.empty(2)
WRONG = {
    "row": (SOURCE, ROWS + 4, ROWS * 0, ONE, 0, SCORES),
    "negative row": (SOURCE, ROWS - 1, ROWS * 0, ONE, 0, SCORES),
    "query": (SOURCE, ROWS, ROWS, ONE, 0, SCORES),
    "width": (SOURCE, ROWS, ROWS * 0, ONE[:, :2].copy(), 0, SCORES),
    "metric": (SOURCE, ROWS, ROWS * 0, ONE, 3, SCORES),
    "scores": (SOURCE, ROWS, ROWS * 0, ONE, 0, np.empty(3)),
}


@pytest.mark.parametrize("case", WRONG)
def test_pairs_that_lead_out_of_memory_are_refused(case):
    with pytest.raises(ValueError, match="must"):
        _native.score_vectors(*WRONG[case])


@pytest.mark.parametrize("offsets", [[0, 3], [0, 5, 4], [1, 4, 4], [0, -1, 4], []])
def test_offsets_that_lead_out_of_memory_are_refused(offsets):
    offsets, n = np.array(offsets, np.int64), max(len(offsets) - 1, 0)
    one, bits = np.zeros((n, 1), np.uint8), np.zeros((n, 8))
    with pytest.raises(ValueError, match="must"):
        _native.score_bytes(bits, bits, one, np.zeros((4, 1), np.uint8), offsets, np.empty(4))
    best = np.empty((n, 2), np.float32), np.empty((n, 2), np.int64)
    with pytest.raises(ValueError, match="must"):
        _native.best_scores(np.zeros(4), np.arange(4), offsets, *best)
