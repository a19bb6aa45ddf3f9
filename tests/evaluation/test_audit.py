import json
from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from oracles.counting import KINDS, distances_by_pairs, random_codes
from oracles.ranking import ap, ndcg
from rankbits import BinaryCodes, affinity
from rankbits.errors import InputError
from rankbits.evaluation import _orders
from rankbits.evaluation._audit import audit

N_QUERIES, N_ITEMS = 7, 40
AUDITED = ("classes", "names", "tags", "graded tags", "neighbours", "judgements")


def sorted_levels(distances, levels, places):
    """Levels in rank order: by distance, then by the place that the tie-breaker gives an item."""
    ranking = sorted(range(len(levels)), key=lambda i: (distances[i], places[i]))
    return [int(levels[i]) for i in ranking]


def mean_in_order(distances, matrix, places, metric, *args):
    """Mean of the metric over the queries with something relevant."""
    rows = zip(distances, matrix, strict=True)
    return np.mean([metric(sorted_levels(d, v, places), *args) for d, v in rows if any(v)])


def places_of(order):
    return {int(item): place for place, item in enumerate(order)}


def case(rng, kind="classes", n_bits=6):
    """Codes with many ties, an affinity, all distances and all levels."""
    queries, database = random_codes(rng, N_QUERIES, n_bits), random_codes(rng, N_ITEMS, n_bits)
    known = KINDS[kind](rng, N_QUERIES, N_ITEMS)
    return queries, database, known.whole, distances_by_pairs(queries, database), known.matrix


def rows_of(metric):
    return {row.key: row for row in metric.rows}


def tie_breakers(labels):
    """Places of items by the definition of each order; labels sort as Python sorts them."""
    by_id = sorted(range(N_ITEMS), key=str, reverse=True)
    by_class = sorted(range(N_ITEMS), key=lambda i: labels[i])
    return {"index": range(N_ITEMS), "trec": places_of(by_id), "class": places_of(by_class)}


@pytest.mark.parametrize("kind", AUDITED)
def test_every_order_scores_what_a_plain_sort_scores(rng, kind):
    queries, database, known, distances, matrix = case(rng, kind)
    result = audit(queries, database, known, n_shuffles=3, random_state=5)
    labels = getattr(known, "database_labels", getattr(known, "database_tags", None))
    breakers = tie_breakers(np.asarray(labels).tolist() if labels is not None else [0] * N_ITEMS)
    for metric, score in ((result.ap, ap), (result.ndcg, ndcg)):
        rows = rows_of(metric)
        assert ("class" in rows) == (labels is not None)
        for key in breakers.keys() & rows.keys():
            expected = mean_in_order(distances, matrix, breakers[key], score)
            assert rows[key].value == pytest.approx(expected, abs=1e-12), key
            assert rows[key].points == pytest.approx(100 * (expected - metric.expected), abs=1e-9)


def test_shuffles_are_seeded_orders_of_the_database(rng):
    queries, database, known, distances, matrix = case(rng)
    row = rows_of(audit(queries, database, known, n_shuffles=3, random_state=5).ap)["shuffled"]
    drawn = np.random.default_rng(5)
    orders = [places_of(drawn.permutation(N_ITEMS)) for _ in range(3)]
    means = [mean_in_order(distances, matrix, order, ap) for order in orders]
    assert (row.low, row.value, row.high) == pytest.approx((min(means), np.mean(means), max(means)))
    assert row.deviation == pytest.approx(np.std(means, ddof=1))
    assert audit(queries, database, known, n_shuffles=1).ap.rows[-2].deviation == 0.0


def test_the_default_argsort_is_numpys_own(rng):
    queries, database = random_codes(rng, N_QUERIES, 6), random_codes(rng, 700, 6)
    matrix = rng.integers(0, 2, (N_QUERIES, 700))
    values = [
        ap([int(v) for v in levels[np.argsort(row.astype(np.float32))]])
        for row, levels in zip(distances_by_pairs(queries, database), matrix, strict=True)
    ]
    result = rows_of(audit(queries, database, affinity.levels(matrix)).ap)["argsort"]
    assert result.value == pytest.approx(np.mean(values), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_score_is_the_mean_over_all_orders_and_bounds_are_their_extremes(seed):
    rng = np.random.default_rng(seed)
    queries, database = random_codes(rng, 1, 2), random_codes(rng, 6, 2)
    matrix = rng.permutation([0, 0, 0, 1, 2, 2])[None]
    result = audit(queries, database, affinity.levels(matrix))
    orders = {str(order): np.array(order) for order in permutations(range(6))}
    scores = {
        "ap": _orders.RelevantRanks.average_precision,
        "dcg": lambda ranks: ranks.discounted_gain(
            np.array([0.0, 1.0, 3.0]), 1 / np.log2([2, 3, 4, 5, 6, 7])
        ),
    }
    table = _orders.score_orders(queries, database, affinity.levels(matrix), orders, scores)
    ideal = 3.0 + 3.0 / np.log2(3) + 0.5
    for metric, values in (
        (result.ap, [row["ap"][0] for row in table.values()]),
        (result.ndcg, [row["dcg"][0] / ideal for row in table.values()]),
    ):
        assert metric.expected == pytest.approx(np.mean(values), abs=1e-12)
        assert (metric.worst, metric.best) == pytest.approx((min(values), max(values)), abs=1e-12)


@pytest.mark.parametrize("kind", AUDITED)
def test_bounds_hold_every_order(rng, kind):
    result = audit(*case(rng, kind)[:3], n_shuffles=20)
    for metric in (result.ap, result.ndcg):
        for row in metric.rows:
            if row.key != "sklearn":  # not a ranking: it may lie outside
                low, high = (row.value if end is None else end for end in (row.low, row.high))
                assert metric.worst - 1e-12 <= low <= high <= metric.best + 1e-12


def test_sorted_by_class_the_first_class_scores_its_best_and_the_last_its_worst(rng):
    queries, database = random_codes(rng, 5, 4), random_codes(rng, 30, 4)
    labels = rng.integers(0, 3, 30)
    for label, bound in ((0, "best"), (2, "worst")):
        result = audit(queries, database, affinity.classes(np.full(5, label), labels))
        for metric in (result.ap, result.ndcg):
            value = rows_of(metric)["class"].value
            assert value == pytest.approx(getattr(metric, bound), abs=1e-12)
            assert value != pytest.approx(metric.expected, abs=1e-3)


def test_the_mean_over_many_shuffles_comes_near_the_exact_score(rng):
    result = audit(*case(rng)[:3], n_shuffles=400)
    for metric in (result.ap, result.ndcg):
        row = rows_of(metric)["shuffled"]
        assert abs(row.value - metric.expected) < 4 * row.deviation / 20
        assert row.deviation > 0


def test_without_ties_every_tool_agrees():
    bits = np.triu(np.ones((8, 8), int))  # item i is at distance 8 - i from the query of zeros
    queries, database = BinaryCodes.from_bits(np.zeros((1, 8), int)), BinaryCodes.from_bits(bits)
    result = audit(queries, database, affinity.classes([1], [1, 0, 1, 0, 0, 1, 0, 1]))
    for metric in (result.ap, result.ndcg):
        values = [row.value for row in metric.rows]
        assert values == pytest.approx([metric.expected] * len(values), abs=1e-12)
    assert result.ties.tied_with == 1.0


def test_scikit_learn_row_is_average_precision_score(rng):
    queries, database, known, distances, matrix = case(rng)
    values = [
        average_precision_score(levels, -row)
        for row, levels in zip(distances, matrix, strict=True)
        if levels.any()
    ]
    result = rows_of(audit(queries, database, known).ap)["sklearn"]
    assert result.value == pytest.approx(np.mean(values), abs=1e-12)
    assert "sklearn" not in rows_of(audit(queries, database, known).ndcg)


@pytest.mark.unsanitized
@pytest.mark.parametrize("kind", ["classes", "graded tags"])
def test_trec_row_is_trec_eval(rng, kind):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    queries, database, known, distances, matrix = case(rng, kind)
    scored = [q for q in range(N_QUERIES) if matrix[q].any()]
    qrels = {str(q): {str(i): int(v) for i, v in enumerate(matrix[q])} for q in scored}
    run = {str(q): {str(i): -float(d) for i, d in enumerate(distances[q])} for q in scored}
    values = pytrec_eval.RelevanceEvaluator(qrels, {"map", "ndcg"}).evaluate(run).values()
    result = audit(queries, database, known, gain="linear")
    mean = {name: np.mean([row[name] for row in values]) for name in ("map", "ndcg")}
    assert rows_of(result.ap)["trec"].value == pytest.approx(mean["map"], abs=1e-7)
    assert rows_of(result.ndcg)["trec"].value == pytest.approx(mean["ndcg"], abs=1e-7)


@pytest.mark.parametrize("discount", ["log2", "rsh"])
@pytest.mark.parametrize("gain", ["exp", "linear"])
def test_ndcg_keeps_the_conventions_asked_for(rng, gain, discount):
    queries, database, known, distances, matrix = case(rng, "graded tags")
    result = audit(queries, database, known, gain=gain, discount=discount)
    expected = mean_in_order(distances, matrix, range(N_ITEMS), ndcg, None, gain, discount)
    assert rows_of(result.ndcg)["index"].value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 5, 17, N_ITEMS, 1000])
def test_cutoffs_in_index_order_are_those_of_a_plain_sort(rng, k):
    queries, database, known, distances, matrix = case(rng)
    result = audit(queries, database, known, ks=[k])
    assert [row.normalise for row in result.cutoffs] == ["retrieved", "min", "total"]
    for row in result.cutoffs:
        expected = mean_in_order(distances, matrix, range(N_ITEMS), ap, k, row.normalise)
        assert row.index_order == pytest.approx(expected, abs=1e-12)
        assert row.order_points == pytest.approx(100 * (row.index_order - row.expected))
        assert row.points == pytest.approx(100 * (row.expected - result.ap.expected))
        if k >= N_ITEMS:
            assert row.expected == pytest.approx(result.ap.expected, abs=1e-12)


def test_queries_without_a_relevant_item_are_counted_and_change_no_number(rng):
    queries, database = random_codes(rng, 3, 5), random_codes(rng, 20, 5)
    labels = rng.integers(0, 2, 20)
    whole = audit(queries, database, affinity.classes([0, 9, 1], labels))
    without_it = audit(queries[[0, 2]], database, affinity.classes([0, 1], labels))
    assert (whole.n_queries, whole.n_skipped, without_it.n_skipped) == (2, 1, 0)
    assert whole.ap == without_it.ap
    assert whole.ndcg == without_it.ndcg
    assert whole.ties == without_it.ties
    assert whole.cutoffs == without_it.cutoffs


def test_an_excluded_item_is_as_if_it_were_not_in_the_database(rng):
    codes = random_codes(rng, 25, 5)
    matrix = rng.integers(0, 3, (1, 25), np.uint8)  # the dtype that is handed out without a copy
    matrix[0, 0] = 2
    before = matrix.copy()
    result = audit(codes[:1], codes, affinity.levels(matrix), exclude_self=np.array([0]), ks=[4])
    without = audit(codes[:1], codes[1:], affinity.levels(matrix[:, 1:]), ks=[4])
    for metric, other in ((result.ap, without.ap), (result.ndcg, without.ndcg)):
        assert metric.expected == pytest.approx(other.expected)
        assert rows_of(metric)["index"].value == pytest.approx(rows_of(other)["index"].value)
    assert [row.index_order for row in result.cutoffs] == pytest.approx(
        [row.index_order for row in without.cutoffs]
    )
    assert (matrix == before).all()


def test_exclude_self_takes_query_i_as_item_i(rng):
    codes = random_codes(rng, 12, 4)
    known = affinity.classes(*[rng.integers(0, 2, 12)] * 2)
    assert (
        audit(codes, codes, known, exclude_self=True).to_dict()
        == audit(codes, codes, known, exclude_self=np.arange(12)).to_dict()
    )


@pytest.mark.parametrize("n_bits", [254, 255, 300])
def test_distances_beyond_a_byte_rank_rightly(rng, n_bits):
    codes = [rng.integers(0, 2, (n, n_bits)) for n in (N_QUERIES, N_ITEMS)]
    codes[1][:20] = 1 - codes[0][0]  # distance n_bits from the first query
    codes[1][20:30] = codes[0][0]
    queries, database = (BinaryCodes.from_bits(bits) for bits in codes)
    matrix = rng.integers(0, 2, (N_QUERIES, N_ITEMS))
    result = audit(queries, database, affinity.levels(matrix), exclude_self=np.full(N_QUERIES, 25))
    distances = distances_by_pairs(queries, database).astype(float)
    distances[:, 25], matrix[:, 25] = np.inf, 0
    expected = mean_in_order(distances, matrix, range(N_ITEMS), ap)
    assert rows_of(result.ap)["index"].value == pytest.approx(expected, abs=1e-12)


def test_blocks_of_queries_change_nothing(rng, monkeypatch):
    queries, database, known, *_ = case(rng, "graded tags")
    whole = audit(queries, database, known).to_dict()
    monkeypatch.setattr(_orders, "_BLOCK_CELLS", 2 * N_ITEMS)
    seen = []
    assert (
        audit(queries, database, known, progress=lambda *done: seen.append(done)).to_dict() == whole
    )
    assert seen == [(2, 7), (4, 7), (6, 7), (7, 7)]


def test_tie_sizes_are_means_over_the_scored_queries(rng):
    queries, database, known, distances, matrix = case(rng)
    ties = audit(queries, database, known).ties
    scored = [q for q in range(N_QUERIES) if matrix[q].any()]
    sizes = [
        np.mean([(distances[q] == distances[q][i]).sum() for i in np.flatnonzero(matrix[q])])
        for q in scored
    ]
    assert ties.tied_with == pytest.approx(np.mean(sizes))
    assert sum(ties.items) == pytest.approx(N_ITEMS)
    assert ties.relevant[2] == pytest.approx(
        np.mean([matrix[q][distances[q] == 2].sum() for q in scored])
    )


def test_the_largest_difference_of_one_query_is_reported(rng):
    queries, database, known, _, matrix = case(rng)
    values = rows_of(audit(queries, database, known).ap)["index"]
    single = []
    for q in range(N_QUERIES):
        if matrix[q].any():
            one = affinity.levels(matrix[q : q + 1])
            single.append(abs(rows_of(audit(queries[[q]], database, one).ap)["index"].points))
    assert values.largest_points == pytest.approx(max(single))


def test_a_seed_gives_the_same_audit_and_another_one_other_shuffles(rng):
    inputs = case(rng)[:3]
    first, again, other = (audit(*inputs, random_state=seed) for seed in (1, 1, 2))
    assert json.dumps(first.to_dict(), allow_nan=False) == json.dumps(again.to_dict())
    assert first.ap.rows[-2] != other.ap.rows[-2]
    assert first.ap.rows[:-2] == other.ap.rows[:-2]


def test_ranges_say_what_the_range_plot_needs(rng):
    result = audit(*case(rng)[:3], name="mine")
    for entry, metric in zip(result.ranges, (result.ap, result.ndcg), strict=True):
        assert (entry["name"], entry["metric"]) == ("mine", metric.name)
        assert entry["worst"] < entry["expected"] < entry["best"]
        assert entry["printed"] == {row.key: row.value for row in metric.rows}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"ks": [0]}, "ks must be an integer >= 1, got 0"),
        ({"ks": [1.5]}, "ks must be an integer >= 1"),
        ({"n_shuffles": 0}, "n_shuffles must be an integer from 1 to 10000, got 0"),
        ({"random_state": -1}, "random_state must be an integer >= 0, got -1"),
        ({"gain": "cubic"}, "gain must be one of"),
        ({"discount": "none"}, "discount must be one of"),
    ],
)
def test_bad_options_are_named(rng, options, says):
    with pytest.raises(InputError, match=says):
        audit(*case(rng)[:3], **options)


def test_inputs_that_do_not_fit_are_named(rng):
    queries, database, known, *_ = case(rng)
    with pytest.raises(InputError, match="affinity is over"):
        audit(queries[:2], database, known)
    with pytest.raises(InputError, match="bits"):
        audit(random_codes(rng, N_QUERIES, 9), database, known)
    nothing = affinity.classes(np.full(N_QUERIES, 77), np.zeros(N_ITEMS, int))
    with pytest.raises(InputError, match="affinity must have a relevant item"):
        audit(queries, database, nothing)
    huge = affinity.levels(rng.choice([0, 2**62], (N_QUERIES, N_ITEMS)))
    with pytest.raises(InputError, match="linear"):
        audit(queries, database, huge)
    assert audit(queries, database, huge, gain="linear").ndcg.expected > 0
