"""Rankings by real-valued queries against codes, against brute force over the orders of ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import ranking
from oracles.scored import NAMES, require_means_over_orders, ties_by_score
from rankbits import BinaryCodes, affinity, compare, evaluate
from rankbits.errors import InputError
from rankbits.index import HammingIndex
from rankbits.metrics import average_precision


def scores_of(weights, codes):
    """Sums of small integers, which are exact in any order."""
    return weights @ (2.0 * codes.bits() - 1.0).T


small_runs = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@given(small_runs, st.integers(1, 7), st.integers(1, 3))
def test_every_metric_is_the_mean_over_the_orders_of_items_with_equal_scores(rng, n_items, n_bits):
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (n_items, n_bits)))
    weights = rng.integers(-2, 3, (2, n_bits)).astype(float)
    levels = rng.integers(0, 3, (2, n_items))
    levels[:, 0] = 1 + levels[:, 0] // 2
    result = evaluate(None, codes, affinity.levels(levels), NAMES, query_weights=weights)
    for query, scores in enumerate(scores_of(weights, codes)):
        require_means_over_orders(result, query, ties_by_score(scores, levels[query].tolist()))


@pytest.mark.parametrize("name", [name for name in NAMES if "@" in name])
def test_a_cutoff_alone_gives_what_it_gives_beside_the_whole_ranking(run, name):
    weights, codes, labels = run
    classes = affinity.classes(*labels)
    alone = evaluate(None, codes, classes, name, query_weights=weights)
    both = evaluate(None, codes, classes, [name, "AP"], query_weights=weights)
    np.testing.assert_allclose(alone.per_query[name], both.per_query[name], rtol=1e-12)


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(5)
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (3000, 21)))
    weights = np.round(rng.standard_normal((40, 21)), 1)  # quantised: many equal scores
    labels = rng.integers(0, 7, 40), rng.integers(0, 7, 3000)
    return weights, codes, labels


def test_weights_of_one_size_rank_as_hamming_distance_does(run):
    weights, codes, labels = run
    queries = BinaryCodes.from_logits(weights)
    signs = 0.25 * (2.0 * queries.bits() - 1.0)
    names = ["AP", "AP@50", "nDCG@10", "P@7", "RR", "AP.best", "nDCG.worst"]
    by_weights = evaluate(queries, codes, affinity.classes(*labels), names, query_weights=signs)
    by_distance = evaluate(queries, codes, affinity.classes(*labels), names)
    for name in names:
        expected = by_distance.per_query[name]
        np.testing.assert_allclose(by_weights.per_query[name], expected, rtol=1e-12)


def test_scores_and_ties_are_those_of_search_real(run):
    weights, codes, labels = run
    index = HammingIndex(codes.n_bits, kind="scan")
    index.add(codes)
    scores, ids = index.search_real(weights, len(codes))
    result = evaluate(None, codes, affinity.classes(*labels), "AP", query_weights=weights)
    for query in range(3):
        relevant = (labels[1][ids[query]] == labels[0][query]).astype(int)
        hist = ranking.histogram_of(ties_by_score(scores[query], relevant.tolist()))
        expected = average_precision(hist)[0]
        assert result.per_query["AP"][query] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["classes", "levels", "judgements", "tags"])
def test_all_kinds_of_affinity_give_the_same_values(run, kind):
    weights, codes, (query_labels, item_labels) = run
    matrix = (query_labels[:, None] == item_labels[None]).astype(int)
    rows = np.column_stack([*np.nonzero(matrix), matrix[matrix > 0]])
    kinds = {
        "classes": affinity.classes(query_labels, item_labels),
        "levels": affinity.levels(matrix),
        "judgements": affinity.judgements(rows, *matrix.shape),
        "tags": affinity.tags(np.eye(7)[query_labels], np.eye(7)[item_labels]),
    }
    names = ["AP", "nDCG@20", "R@100"]
    expected = evaluate(None, codes, affinity.levels(matrix), names, query_weights=weights)
    result = evaluate(None, codes, kinds[kind], names, query_weights=weights)
    for name in names:
        np.testing.assert_array_equal(result.per_query[name], expected.per_query[name])


def test_an_excluded_item_is_as_if_it_were_not_there(run):
    weights, codes, (query_labels, item_labels) = run
    own = np.arange(len(weights)) * 3
    own[::4] = -1
    names = ["AP", "nDCG@5", "P@1"]
    labels = affinity.classes(query_labels, item_labels)
    result = evaluate(None, codes, labels, names, query_weights=weights, exclude_self=own)
    for query in (0, 1, 2, 39):
        others = np.delete(np.arange(len(codes)), own[query] if own[query] >= 0 else [])
        alone = evaluate(
            None,
            codes[others],
            affinity.classes(query_labels[query : query + 1], item_labels[others]),
            names,
            query_weights=weights[query : query + 1],
        )
        for name in names:
            assert result.per_query[name][query] == alone.per_query[name][0], name


def test_batches_and_threads_change_nothing(run, monkeypatch):
    from rankbits.histogram import _ranked

    weights, codes, labels = run
    classes = affinity.classes(*labels)
    expected = evaluate(None, codes, classes, ["AP", "AP@9"], query_weights=weights)
    seen = []
    for limit in ("_QUERIES", "_RELEVANT", "_CELLS", "_TABLE_CELLS"):
        monkeypatch.setattr(_ranked, limit, 1000 if limit == "_CELLS" else 700)
    monkeypatch.setattr(_ranked, "_QUERIES", 9)
    result = evaluate(
        None,
        codes,
        classes,
        ["AP", "AP@9"],
        query_weights=weights,
        n_threads=2,
        progress=lambda *step: seen.append(step),
    )
    for name in ("AP", "AP@9"):
        np.testing.assert_array_equal(result.per_query[name], expected.per_query[name])
    assert seen == sorted(seen)
    assert len(seen) > 9
    assert seen[-1] == (40 * 3000, 40 * 3000)


def test_the_result_says_what_ranked_it_and_compares_with_any_other(run):
    weights, codes, labels = run
    classes = affinity.classes(*labels)
    result = evaluate(None, codes, classes, "AP", query_weights=weights)
    summary = result.to_dict()
    assert summary["ranked_by"] == "the inner product of real-valued queries and codes"
    assert (summary["bits"], summary["queries"], summary["database"]) == (21, 40, 3000)
    by_distance = evaluate(BinaryCodes.from_logits(weights), codes, classes, "AP")
    difference = compare(by_distance, result, n_resamples=20).metrics["AP"].difference
    assert difference == pytest.approx(result.mean["AP"] - by_distance.mean["AP"])
    with pytest.raises(InputError, match="has no histogram of Hamming distances"):
        _ = result.histogram


def test_queries_with_nothing_relevant_follow_the_policy():
    codes = BinaryCodes.from_bits([[0, 1], [1, 1]])
    labels, weights = affinity.classes([1, 2], [1, 1]), [[1.0, 2.0], [1.0, 2.0]]
    skipped = evaluate(None, codes, labels, ["AP", "P@1"], query_weights=weights)
    assert np.isnan(skipped.per_query["AP"]).tolist() == [False, True]
    assert (skipped.n_skipped, skipped.per_query["P@1"].tolist()) == (1, [1.0, 0.0])
    zero = evaluate(None, codes, labels, "AP", "zero", query_weights=weights)
    assert zero.per_query["AP"].tolist() == [1.0, 0.0]
    with pytest.raises(InputError, match="query 1 has no relevant item"):
        evaluate(None, codes, labels, "AP", "error", query_weights=weights)


@pytest.mark.parametrize(
    ("weights", "names", "reason"),
    [
        ([[1.0, np.nan]], ["AP"], r"query_weights must be finite, got nan in row 0"),
        (
            [[1.0, 2.0, 3.0]],
            ["AP"],
            r"query_weights must be real numbers of shape \(queries, 2\), one",
        ),
        ([1.0, 2.0], ["AP"], r"query_weights must have shape \(n, 2\)"),
        (np.empty((0, 2)), ["AP"], r"query_weights must not be empty"),
        ([["a", "b"]], ["AP"], r"query_weights must be real numbers"),
        ([[3e38, 3e38]], ["AP"], r"query_weights must add up to a number that float32 holds"),
        ([[1.0, 2.0]], ["P@r1"], r"'P@r1' needs Hamming distances.*cut by a rank"),
        ([[1.0, 2.0]], ["LGAP@r1"], r"'LGAP@r1' needs Hamming distances"),
        ([[1.0, 2.0], [1.0, 2.0]], ["AP"], r"affinity is over 1 queries and 3 items"),
    ],
)
def test_bad_weights_and_metrics_are_refused_in_one_sentence(weights, names, reason):
    codes = BinaryCodes.from_bits([[0, 0], [0, 1], [1, 1]])
    with pytest.raises(InputError, match=reason):
        evaluate(None, codes, affinity.classes([7], [7, 8, 7]), names, query_weights=weights)


def test_codes_of_the_queries_must_fit_the_weights():
    codes = BinaryCodes.from_bits([[0, 0], [0, 1], [1, 1]])
    labels = affinity.classes([7], [7, 8, 7])
    with pytest.raises(InputError, match="got 1 rows for 2 queries"):
        evaluate(codes[:2], codes, labels, query_weights=[[1.0, 2.0]])
    with pytest.raises(InputError, match="queries must be BinaryCodes, got None"):
        evaluate(None, codes, labels)


def test_a_cutoff_beyond_the_database_takes_all_of_it():
    codes = BinaryCodes.from_bits([[0, 0], [0, 1], [1, 1]])
    labels = affinity.classes([7], [7, 8, 7])
    result = evaluate(None, codes, labels, ["P@99", "nDCG@99"], query_weights=[[1.0, 2.0]])
    whole = evaluate(None, codes, labels, ["P@3", "nDCG"], query_weights=[[1.0, 2.0]])
    assert list(result.mean.values()) == list(whole.mean.values())
