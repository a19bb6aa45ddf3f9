"""Rankings by float vectors, against brute force, scikit-learn and the rankings of codes."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from oracles.scored import NAMES, require_means_over_orders, ties_by_score
from rankbits import BinaryCodes, affinity, compare, evaluate, evaluate_vectors
from rankbits.errors import FileFormatError, InputError
from rankbits.histogram import TieHistogram, _ranked, _vectors
from rankbits.metrics import average_precision
from realdata import real

DTYPES = ["float16", "float32", "float64", "int8", "uint8", "int16", ">f4"]


def scores_of(queries, database, metric):
    """Scores by plain sums in double, pair by pair: equal rows have equal scores."""
    scores = np.empty((len(queries), len(database)))
    for i, query in enumerate(np.asarray(queries, float)):
        for j, item in enumerate(np.asarray(database, float)):
            if metric == "l2":
                scores[i, j] = -sum((query - item) ** 2)
                continue
            lengths = np.sqrt(sum(query**2)) * np.sqrt(sum(item**2)) if metric == "cosine" else 1.0
            scores[i, j] = sum(query * item) / lengths if lengths else 0.0
    return scores


@given(
    st.integers(0, 2**32 - 1).map(np.random.default_rng),
    st.integers(1, 7),
    st.sampled_from(["ip", "l2"]),
    st.sampled_from(DTYPES),
)
def test_every_metric_is_the_mean_over_the_orders_of_items_at_equal_distances(
    rng, n_items, metric, dtype
):
    database = rng.integers(0, 3, (n_items, 2)).astype(dtype)
    queries = rng.integers(0, 3, (2, 2)).astype(dtype)
    levels = rng.integers(0, 3, (2, n_items))
    levels[:, 0] = 1 + levels[:, 0] // 2
    result = evaluate_vectors(queries, database, affinity.levels(levels), NAMES, metric)
    for query, scores in enumerate(scores_of(queries, database, metric)):
        require_means_over_orders(result, query, ties_by_score(scores, levels[query].tolist()))


@pytest.fixture(scope="module")
def run():
    """Sixty different vectors, each several times and far apart, so that blocks cut them."""
    rng = np.random.default_rng(0)
    different = rng.standard_normal((60, 37)).astype(np.float32)
    different[5] = 0.0
    database = different[rng.integers(0, 60, 400)]
    queries = rng.standard_normal((9, 37)).astype(np.float32)
    queries[0] = different[7]
    queries[1] = 0.0
    levels = rng.integers(0, 4, (9, 400)) * (rng.random((9, 400)) < 0.2)
    return queries, database, levels


@pytest.mark.parametrize("n_cells", [9 * 400, 9 * 3, 1])
@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
def test_equal_vectors_are_ties_in_any_block_as_scikit_learn_averages_them(
    run, metric, n_cells, monkeypatch
):
    queries, database, levels = run
    monkeypatch.setattr(_ranked, "_CELLS", n_cells)
    monkeypatch.setattr(_vectors, "_WIDE_CELLS", 37 * 150)
    names = ["nDCG(linear)", "nDCG(linear)@10", "AP"]
    result = evaluate_vectors(queries, database, affinity.levels(levels), names, metric)
    scores = scores_of(queries, database, metric)
    for name, k in (("nDCG(linear)", None), ("nDCG(linear)@10", 10)):
        expected = [
            ndcg_score(levels[q : q + 1], scores[q : q + 1], k=k) for q in range(len(queries))
        ]
        np.testing.assert_allclose(result.per_query[name], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
def test_vectors_of_plus_and_minus_one_rank_as_their_codes_do(metric):
    rng = np.random.default_rng(1)
    bits, labels = rng.integers(0, 2, (500, 24)), rng.integers(0, 5, 500)
    signs = (2.0 * bits - 1.0).astype(np.float32)
    classes = affinity.classes(labels[:50], labels)
    codes, names = BinaryCodes.from_bits(bits), ["AP", "AP@20", "nDCG@7", "RR", "AP.worst"]
    by_vectors = evaluate_vectors(
        signs[:50], signs, classes, names, metric, exclude_self=_first(50)
    )
    by_codes = evaluate(codes[:50], codes, classes, names, exclude_self=_first(50))
    for name in names:
        expected = by_codes.per_query[name]
        np.testing.assert_allclose(by_vectors.per_query[name], expected, rtol=1e-12)
    assert by_vectors.to_dict()["database"] == 499
    assert compare(by_codes, by_vectors, n_resamples=10).metrics["AP"].difference == pytest.approx(
        0
    )


def _first(n):
    return np.arange(n)


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
@pytest.mark.parametrize("form", ["float16", "int8", "uint8", "int32", ">f4", "strided", "mapped"])
def test_the_form_of_the_array_does_not_matter(form, metric, tmp_path):
    rng = np.random.default_rng(2)
    whole = rng.integers(0, 100, (300, 11))  # which every dtype holds
    queries, levels = whole[:7] + 0.5, affinity.levels(rng.integers(0, 2, (7, 300)))
    database = {
        "strided": lambda: np.repeat(whole.astype(np.float32), 2, axis=1)[:, ::2],
        "mapped": lambda: _mapped(tmp_path / "x.npy", whole.astype(np.float32)),
    }.get(form, lambda: whole.astype(form))()
    result = evaluate_vectors(queries, database, levels, ["AP", "P@5"], metric)
    plain = evaluate_vectors(queries, whole.astype(float), levels, ["AP", "P@5"], metric)
    for name in ("AP", "P@5"):
        np.testing.assert_array_equal(result.per_query[name], plain.per_query[name])


def _mapped(path, array):
    np.save(path, array)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize(("metric", "offset"), [("cosine", 0), ("ip", 1e6), ("l2", 1e6), ("l2", 0)])
def test_near_ties_are_told_apart(metric, offset):
    rng = np.random.default_rng(3)
    base, query = rng.standard_normal((2, 8)) + offset
    steps = rng.permutation(40) * 1e-9 * np.abs(base).max()
    database = base + steps[:, None] * rng.standard_normal((40, 8))
    levels = rng.integers(0, 2, (1, 40))
    result = evaluate_vectors(query[None], database, affinity.levels(levels), "AP", metric)
    scores = [_exact_score(query, item, metric) for item in database]
    order = sorted(range(40), key=lambda item: scores[item], reverse=True)
    hits = np.flatnonzero(levels[0][order]) + 1
    expected = np.mean(np.arange(1, len(hits) + 1) / hits)
    assert result.per_query["AP"][0] == pytest.approx(expected, abs=1e-9)


def _exact_score(query, item, metric):
    """Rational numbers in the order of the scores."""
    q, x = [Fraction(v) for v in query], [Fraction(v) for v in item]
    if metric == "l2":
        return -sum((a - b) ** 2 for a, b in zip(q, x, strict=True))
    product = sum(a * b for a, b in zip(q, x, strict=True))
    if metric == "ip":
        return product
    return (1 if product > 0 else -1) * product**2 / sum(b * b for b in x)


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_single_precision_with_few_relevant_items_changes_nothing(metric, dtype, monkeypatch):
    """Thousands of items, some equal and some one rounding apart from a relevant one."""
    rng = np.random.default_rng(0)
    database = rng.standard_normal((9000, 24)).astype(dtype)
    queries = rng.standard_normal((5, 24)).astype(dtype)
    judged = [(query, item, 1 + item % 2) for query in range(5) for item in range(40)]
    database[100:140] = database[:40]
    database[200:240] = np.nextafter(database[:40], np.array(9, dtype))
    arguments = queries, database, affinity.judgements(judged, 5, 9000), NAMES, metric
    quick = evaluate_vectors(*arguments)
    monkeypatch.setattr(_ranked, "_QUICK_MARKS", -1)
    for name, values in evaluate_vectors(*arguments).per_query.items():
        np.testing.assert_array_equal(quick.per_query[name], values)


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_few_large_classes_with_equal_vectors_score_as_scikit_learn_averages_ties(
    dispatch, metric, dtype, n_threads
):
    rng = np.random.default_rng(5)
    different = rng.integers(-100, 100, (150, 13)).astype(dtype)
    database, labels = different[rng.integers(0, 150, 700)], rng.integers(0, 2, 700)
    queries = rng.integers(-100, 100, (4, 13)).astype(dtype)
    classes = affinity.classes([0, 1, 0, 1], labels)
    names = ["nDCG(linear)", "nDCG(linear)@10"]
    result = evaluate_vectors(queries, database, classes, names, metric, n_threads=n_threads)
    scores = scores_of(queries, database, metric)
    for name, k in zip(names, (None, 10), strict=True):
        expected = [
            ndcg_score((labels == q % 2)[None].astype(int), scores[q : q + 1], k=k)
            for q in range(4)
        ]
        np.testing.assert_allclose(result.per_query[name], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("metric", ["ip", "l2"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_thousands_of_relevant_items_with_many_ties_are_ranked_as_whole_numbers_are(
    dispatch, metric, n_threads, monkeypatch
):
    """Scores are whole numbers, which NumPy counts; classes come in no order, in two batches."""
    rng = np.random.default_rng(6)
    database, queries = rng.integers(-3, 4, (9000, 12)), rng.integers(-3, 4, (5, 12))
    labels, own = rng.integers(0, 3, 9000), np.array([2, 0, 2, 1, 0])
    monkeypatch.setattr(_ranked, "_RELEVANT", 9000)
    result = evaluate_vectors(
        queries.astype(np.float32),
        database.astype(np.float32),
        affinity.classes(own, labels),
        ["AP", "nDCG(linear)@500"],
        metric,
        n_threads=n_threads,
    )
    products = queries @ database.T
    scores = products if metric == "ip" else 2 * products - (database**2).sum(axis=1)
    for q, label in enumerate(own):
        _, tie = np.unique(-scores[q], return_inverse=True)
        counts = np.stack(
            [
                np.bincount(tie[labels != label], minlength=tie.max() + 1),
                np.bincount(tie[labels == label], minlength=tie.max() + 1),
            ],
            axis=1,
        )
        expected = average_precision(TieHistogram(counts[None], np.array([0, 1])))[0]
        assert result.per_query["AP"][q] == pytest.approx(expected, abs=1e-12)
        gains = (labels == label)[None].astype(int)
        expected = ndcg_score(gains, scores[q : q + 1].astype(float), k=500)
        assert result.per_query["nDCG(linear)@500"][q] == pytest.approx(expected, abs=1e-9)


def test_a_metric_of_the_first_ranks_is_the_same_beside_one_of_the_whole_ranking(run):
    queries, database, levels = run
    cut = ["nDCG@3", "AP@5", "AP(total)@2", "P@1", "R@7", "RR@4", "nDCG(linear)@20"]
    arguments = queries, database, affinity.levels(levels)
    alone, beside = (evaluate_vectors(*arguments, names) for names in (cut, [*cut, "AP"]))
    for name in alone.per_query:
        np.testing.assert_allclose(beside.per_query[name], alone.per_query[name], rtol=1e-12)


def test_zero_tiny_and_huge_vectors_have_a_cosine():
    directions = np.array([[1.0, 0.0], [1.0, 1.0], [-1.0, 0.2], [0.0, 0.0]])
    scales = np.array([1e-160, 1.0, 1e90, 1.0])
    levels = affinity.levels([[0, 1, 0, 1]])
    query = np.array([[1.0, 0.1]])
    result = evaluate_vectors(query, directions * scales[:, None], levels, "AP")
    assert result.per_query["AP"][0] == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_memory_beyond_the_inputs_stays_below_64_mb():
    rng = np.random.default_rng(4)
    database = rng.standard_normal((200_000, 32), dtype=np.float32)
    labels = rng.integers(0, 10, 200_000)
    classes = affinity.classes(labels[:40], labels)
    tracemalloc.start()
    evaluate_vectors(database[:40], database, classes, ["AP", "nDCG"])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * 2**20


@pytest.mark.parametrize(
    ("queries", "database", "options", "reason"),
    [
        ([[1.0, np.nan]], np.ones((3, 2)), {}, "queries must be finite, got nan in row 0"),
        (
            [[1.0, 2.0]],
            [[1, 2], [1, np.inf], [1, 1]],
            {},
            "database must be finite .* row 1 is not",
        ),
        ([[1.0, 2.0]], [[1, 2], [1, 1e160], [1, 1]], {}, "squares below 1e200, row 1 is not"),
        ([[1e160, 1e160]], np.ones((3, 2)), {"metric": "ip"}, "queries must have squares that"),
        ([[1.0, 2.0, 3.0]], np.ones((3, 2)), {}, "got 3 and 2; make both with the same model"),
        ([1.0, 2.0], np.ones((3, 2)), {}, r"queries must have shape \(n, d\)"),
        (np.empty((0, 2)), np.ones((3, 2)), {}, "queries must not be empty"),
        ([[1.0, 2.0]], np.empty((0, 2)), {}, "database must not be empty"),
        ([["a", "b"]], np.ones((3, 2)), {}, "queries must be real numbers"),
        ([[1j, 2.0]], np.ones((3, 2)), {}, "queries must be real numbers"),
        (
            [[1.0, 2.0]],
            np.ones((3, 2)),
            {"metric": "euclid"},
            "metric must be one of cosine, ip, l2",
        ),
        ([[1.0, 2.0]], np.ones((3, 2)), {"metrics": "P@r2"}, "'P@r2' needs Hamming distances"),
        ([[1.0, 2.0]], np.ones((3, 2)), {"empty": "drop"}, "empty must be one of"),
        ([[1.0, 2.0]], np.ones((4, 2)), {}, "affinity is over 1 queries and 3 items, the vectors"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(queries, database, options, reason):
    with pytest.raises(InputError, match=reason):
        evaluate_vectors(queries, database, affinity.levels([[1, 0, 1]]), **options)


def test_a_mapped_file_that_was_truncated_is_an_error(tmp_path):
    path = tmp_path / "x.npy"
    database = _mapped(path, np.ones((4000, 8), np.float32))
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(FileFormatError, match="was truncated while it was in use"):
        evaluate_vectors(np.ones((1, 8)), database, affinity.levels(np.ones((1, 4000), int)))


def test_text_vectors_of_npl_score_what_was_measured_elsewhere():
    with np.load(real("npl_minilm.npz")) as data:
        queries, documents, rows = data["queries"], data["documents"], data["qrels"]
    judged = affinity.judgements(rows, len(queries), len(documents))
    result = evaluate_vectors(queries, documents, judged, "nDCG@10")
    assert result.mean["nDCG@10"] == pytest.approx(0.4335, abs=5e-5)
