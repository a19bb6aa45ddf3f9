"""Lists of results, against brute force over orders, trec_eval and the evaluation of codes."""

from itertools import groupby

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from oracles import ranking
from rankbits import (
    BinaryCodes,
    affinity,
    evaluate,
    evaluate_histogram,
    evaluate_rankings,
    evaluate_vectors,
)
from rankbits.errors import InputError
from rankbits.evaluation import nearest_vectors
from rankbits.index import HammingIndex

CUT = {  # each metric as a function of one order of levels and of all levels of the database
    "AP@3": lambda order, _: ranking.ap(order, 3),
    "AP(min)@4": lambda order, every: _ap(order, every, min(sum(v > 0 for v in every), 4)),
    "AP(total)@4": lambda order, every: _ap(order, every, sum(v > 0 for v in every)),
    "nDCG@4": lambda order, every: _ndcg(order, every, 4),
    "P@4": lambda order, every: sum(v > 0 for v in order[:4]) / min(4, len(every)),
    "R@3": lambda order, every: sum(v > 0 for v in order[:3]) / sum(v > 0 for v in every),
    "Hit@2": lambda order, _: ranking.hit(order, 2),
    "RR@4": lambda order, _: ranking.reciprocal_rank(order, 4),
}


def _ap(order, every, divisor):
    hits = [rank for rank, level in enumerate(order[:4], start=1) if level > 0]
    return sum(hit / rank for hit, rank in enumerate(hits, start=1)) / divisor


def _ndcg(order, every, k):
    ideal = ranking.dcg(sorted(every, reverse=True), k, "exp", "log2")
    return ranking.dcg(order, k, "exp", "log2") / ideal


@given(st.integers(0, 2**32 - 1).map(np.random.default_rng), st.integers(1, 8), st.integers(1, 6))
def test_ties_and_missing_items_are_as_in_the_mean_over_all_orders(rng, n_items, width):
    levels = rng.integers(0, 3, n_items)
    levels[rng.integers(n_items)] = 1
    returned = rng.permutation(n_items)[:width]
    ids = np.full((1, width), -1)
    ids[0, : len(returned)] = returned
    scores = np.sort(rng.integers(0, 3, (1, width)))[:, ::-1].astype(float)
    result = evaluate_rankings(ids, affinity.levels(levels[None]), list(CUT), scores)
    pairs = zip(scores[0], levels[returned].tolist(), strict=False)
    ties = [[level for _, level in tie] for _, tie in groupby(pairs, key=lambda pair: pair[0])]
    for name, metric in CUT.items():
        expected = ranking.mean(ties, metric, levels.tolist())
        assert result.per_query[name][0] == pytest.approx(expected, abs=1e-12), name


@pytest.fixture(scope="module")
def run():
    """Thirty queries, 500 items, graded judgements, lists of 40 results without ties."""
    rng = np.random.default_rng(0)
    levels = rng.integers(1, 4, (30, 500)) * (rng.random((30, 500)) < 0.02)
    levels[:, 0] = 1
    noise = rng.standard_normal((30, 500)) + 0.8 * levels
    ids = np.argsort(-noise, axis=1)[:, :40]
    ids[3, 25:] = -1
    return levels, ids, np.take_along_axis(noise, ids, axis=1)


TREC = {
    "AP(total)@40": "map",
    "AP(total)@10": "map_cut_10",
    "nDCG(linear)@40": "ndcg",
    "nDCG(linear)@10": "ndcg_cut_10",
    "P@10": "P_10",
    "P@100": "P_100",
    "R@10": "recall_10",
    "R@100": "recall_100",
    "RR@40": "recip_rank",
    "Hit@10": "success_10",
}


@pytest.mark.parametrize("with_scores", [False, True])
@pytest.mark.unsanitized  # pytrec_eval itself does not run there
def test_lists_without_ties_score_as_trec_eval_scores_them(run, with_scores):
    levels, ids, scores = run
    qrels = {
        str(q): {str(i): int(level) for i, level in enumerate(row) if level}
        for q, row in enumerate(levels)
    }
    lists = {
        str(q): {
            str(item): float(score)
            for item, score in zip(row, row_scores, strict=True)
            if item >= 0
        }
        for q, (row, row_scores) in enumerate(zip(ids, scores, strict=True))
    }
    expected = pytrec_eval.RelevanceEvaluator(qrels, set(TREC.values())).evaluate(lists)
    given_scores = scores if with_scores else None
    result = evaluate_rankings(ids, affinity.levels(levels), list(TREC), given_scores)
    for name, measure in TREC.items():
        values = [expected[str(q)][measure] for q in range(len(ids))]
        np.testing.assert_allclose(result.per_query[name], values, atol=1e-9, err_msg=name)


def test_whole_rankings_of_codes_score_as_the_codes_do():
    rng = np.random.default_rng(1)
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (80, 6)))
    labels = affinity.classes(rng.integers(0, 4, 12), rng.integers(0, 4, 80))
    index = HammingIndex(6, kind="scan")
    index.add(codes)
    distances, ids = index.search(codes[:12], 80)
    names = ["AP", "AP@20", "nDCG", "nDCG@9", "P@30", "F1@7", "RR", "AP.best", "nDCG.worst@5"]
    for own in (False, np.arange(12)):
        result = evaluate_rankings(ids, labels, names, distances, exclude_self=own)
        expected = evaluate(codes[:12], codes, labels, names, exclude_self=own)
        for name in names:
            np.testing.assert_allclose(
                result.per_query[name], expected.per_query[name], rtol=1e-12, err_msg=name
            )
        assert result.to_dict()["database"] == expected.to_dict()["database"]


def test_the_order_of_kinds_of_affinity_does_not_matter(run):
    levels, ids, scores = run
    rows = np.column_stack([*np.nonzero(levels), levels[levels > 0]])
    judged = affinity.judgements(rows, *levels.shape)
    dense, sparse = (
        evaluate_rankings(ids, kind, "nDCG@10", scores).per_query["nDCG@10"]
        for kind in (affinity.levels(levels), judged)
    )
    np.testing.assert_array_equal(dense, sparse)


def test_overlap_is_the_share_of_the_head_of_the_reference():
    reference = [[5, 3, 1], [0, 1, 2]]
    ids = [[3, 9, 5, 1], [7, 8, 9, -1]]
    result = evaluate_rankings(
        ids, None, ["overlap@2", "overlap@3"], n_items=10, reference=reference
    )
    assert result.per_query["overlap@2"].tolist() == [0.5, 0.0]
    assert result.per_query["overlap@3"].tolist() == pytest.approx([2 / 3, 0.0])
    tied = evaluate_rankings(
        ids, None, "overlap@2", [[4, 3, 3, 1], [4, 3, 2, 1]], n_items=10, reference=reference
    )
    assert tied.per_query["overlap@2"].tolist() == [0.75, 0.0]


def test_overlap_and_ordinary_metrics_come_together_in_the_order_they_were_named():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((200, 16)).astype(np.float32)
    labels = affinity.classes(rng.integers(0, 3, 20), rng.integers(0, 3, 200))
    reference = nearest_vectors(x[:20], x, 10)
    names = ["overlap@10", "AP", "overlap@5"]
    codes = BinaryCodes.from_logits(x)
    by_codes = evaluate(codes[:20], codes, labels, names, reference=reference)
    by_weights = evaluate(
        None, codes, labels, names, query_weights=x[:20].astype(float), reference=reference
    )
    by_vectors = evaluate_vectors(x[:20], x, labels, names, reference=reference)
    assert list(by_codes.per_query) == names
    assert by_vectors.mean["overlap@10"] == by_vectors.mean["overlap@5"] == 1.0
    assert 0.2 < by_codes.mean["overlap@10"] < by_weights.mean["overlap@10"] < 1.0
    assert by_codes.mean["AP"] == evaluate(codes[:20], codes, labels, "AP").mean["AP"]
    words = by_codes.to_dict()["metrics"]["overlap@10"]["conventions"]
    assert words["relevant"] == "the first k items of the reference ranking"


@pytest.mark.parametrize("n_cells", [160, 1 << 20])
@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
def test_the_nearest_vectors_are_those_of_a_sort_by_distance_and_id(metric, n_cells, monkeypatch):
    from rankbits.evaluation import _nearest

    rng = np.random.default_rng(3)
    x = rng.integers(-2, 3, (150, 4)).astype(np.float32)  # many equal distances
    x[0] = 1.0
    products = x[:9].astype(float) @ x.T
    squares = (x.astype(float) ** 2).sum(axis=1)
    distances = {
        "ip": -products,
        "l2": squares[:9, None] + squares - 2 * products,
        "cosine": -np.sign(products) * products**2 / np.maximum(squares, 1),
    }[metric]
    if metric == "cosine":  # parallel vectors: equal up to rounding, so compare what is unequal
        distances = np.round(distances, 9)
    expected = np.argsort(distances, axis=1, kind="stable")[:, :12]
    monkeypatch.setattr(_nearest, "_CELLS", n_cells)
    ids = nearest_vectors(x[:9], x, 12, metric)
    if metric == "cosine":
        rows = np.arange(9)[:, None]
        np.testing.assert_array_equal(distances[rows, ids], distances[rows, expected])
    else:
        np.testing.assert_array_equal(ids, expected)
    own = nearest_vectors(x, x, 200, metric, exclude_self=True)
    assert (own[:, 149:] == -1).all()
    assert (np.sort(own[:, :149], axis=1)[7] == np.delete(np.arange(150), 7)).all()


LISTS, LEVELS = [[0, 1, 2]], [[1, 0, 1, 0, 0]]


@pytest.mark.parametrize(
    ("ids", "options", "reason"),
    [
        ([[0, 1, 5]], {}, "ids must name items from 0 to 4, or -1 for none, got 5 for query 0"),
        ([[0, -2, 1]], {}, "got -2 for query 0"),
        ([[0, 1, 1]], {}, "ids must name an item once, query 0 has item 1 twice"),
        ([[0.5, 1.0]], {}, "ids must be integers"),
        ([0, 1, 2], {}, r"ids must have shape \(n, k\)"),
        (np.empty((1, 0), int), {}, "ids must not be empty"),
        ([[0, 1], [1, 2]], {}, "affinity is over 1 queries and 5 items, the lists are 2 and 5"),
        (LISTS, {"scores": [[1, np.nan, 2]]}, "scores must be numbers, query 0 has NaN"),
        (LISTS, {"scores": [[3, 1, 2]]}, "scores must fall along every list, or rise"),
        (LISTS, {"scores": [[3, 1]]}, r"scores must be real numbers of shape \(1, 3\)"),
        (LISTS, {"metrics": ["AP"]}, r"'AP' needs the whole ranking.* as in AP\(total\)@3"),
        (LISTS, {"metrics": ["nDCG"]}, "'nDCG' needs the whole ranking.* as in nDCG@3"),
        (LISTS, {"metrics": ["P@r2"]}, "'P@r2' needs Hamming distances"),
        (LISTS, {"metrics": ["overlap@3"]}, "reference must be given for metric 'overlap@3'"),
        (
            LISTS,
            {"metrics": ["overlap@3"], "reference": [[1, 2]]},
            "'overlap@3' needs the first 3 items of each reference ranking, reference has 2",
        ),
        (
            LISTS,
            {"metrics": ["overlap@1"], "reference": [[1], [2]]},
            "reference must have a row for each of 1 queries, got 2 rows",
        ),
        (LISTS, {"metrics": ["overlap@1"], "reference": [[9]]}, "reference must name items from 0"),
        (LISTS, {"n_items": 9}, "n_items is 9, affinity is over 5 items"),
        (LISTS, {"empty": "drop"}, "empty must be one of"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(ids, options, reason):
    with pytest.raises(InputError, match=reason):
        evaluate_rankings(ids, affinity.levels(LEVELS), **options)


def test_an_affinity_is_needed_by_what_reads_it():
    with pytest.raises(InputError, match=r"affinity must come from rankbits\.affinity, or be None"):
        evaluate_rankings(LISTS, None)
    with pytest.raises(InputError, match="affinity must be given, since metric 'P@1' reads it"):
        evaluate_rankings(LISTS, None, "P@1", n_items=5)
    codes = BinaryCodes.from_bits([[0, 1], [1, 1]])
    with pytest.raises(InputError, match="affinity must be given, since metric 'AP' reads it"):
        evaluate(codes, codes, None)
    hist = evaluate(codes, codes, affinity.levels([[1, 0], [0, 1]])).histogram
    with pytest.raises(InputError, match="'overlap@2' needs a reference ranking, which"):
        evaluate_histogram(hist, "overlap@2")
