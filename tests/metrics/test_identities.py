"""What must hold between metrics, and between a database and its copies."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oracles.ranking import histogram_of, tied_cases
from rankbits import TieHistogram, metrics

CASES = tied_cases(max_level=2, max_ties=5, max_items=9)
NOTHING = TieHistogram(np.zeros((1, 3, 2), np.int64), np.array([0, 1]))
IRRELEVANT = TieHistogram(np.array([[[2, 0], [0, 0], [5, 0]]]), np.array([0, 1]))


@given(CASES, st.integers(1, 60))
def test_a_duplicated_database_leaves_precision_unchanged(ties, k):
    h = histogram_of(ties)
    twice = h + h
    for radius in range(h.n_bits + 1):
        assert metrics.precision(twice, radius=radius) == metrics.precision(h, radius=radius)
    assert metrics.precision(twice, k=2 * k)[0] == pytest.approx(
        metrics.precision(h, k=k)[0], abs=1e-14
    )


@given(CASES, st.sampled_from(["retrieved", "min", "total"]), st.integers(0, 9))
def test_a_cutoff_beyond_the_database_is_no_cutoff(ties, normalise, beyond):
    h = histogram_of(ties)
    k = max(int(h.counts.sum()), 1) + beyond
    whole, cut = metrics.average_precision(h), metrics.average_precision(h, k, normalise)
    np.testing.assert_allclose(cut, whole, rtol=1e-14)
    np.testing.assert_allclose(metrics.ndcg(h, k), metrics.ndcg(h), rtol=1e-14)
    np.testing.assert_array_equal(metrics.reciprocal_rank(h, k), metrics.reciprocal_rank(h))
    bounds = metrics.average_precision_bounds(h), metrics.average_precision_bounds(h, k, normalise)
    np.testing.assert_allclose(bounds[1], bounds[0], rtol=1e-14)


@given(CASES)
def test_empty_ties_change_nothing(ties):
    spread = [part for tie in ties for part in (tie, [])]
    for metric in (metrics.average_precision, metrics.ndcg, metrics.reciprocal_rank):
        assert metric(histogram_of(ties))[0] == pytest.approx(
            metric(histogram_of(spread))[0], nan_ok=True
        )


@given(CASES, st.lists(st.integers(1, 60), min_size=1, max_size=4))
def test_curves_by_rank_hold_the_metrics_at_each_rank(ties, ranks):
    h = histogram_of(ties)
    curve = metrics.precision_recall_by_rank(h, ranks)
    expected = [metrics.precision(h, k=k)[0] for k in ranks]
    assert curve.precision[0].tolist() == expected
    assert metrics.precision_curve(h, ranks)[0].tolist() == expected
    expected = [metrics.recall(h, k=k)[0] for k in ranks]
    assert curve.recall[0].tolist() == pytest.approx(expected, nan_ok=True)
    assert metrics.recall_curve(h, ranks)[0].tolist() == pytest.approx(expected, nan_ok=True)


@given(CASES)
def test_curves_by_radius_hold_the_metrics_at_each_radius(ties):
    h = histogram_of(ties)
    curve = metrics.precision_recall_by_radius(h)
    radii = range(h.n_bits + 1)
    assert curve.precision[0].tolist() == [metrics.precision(h, radius=r)[0] for r in radii]
    expected = [metrics.recall(h, radius=r)[0] for r in radii]
    assert curve.recall[0].tolist() == pytest.approx(expected, nan_ok=True)


@given(tied_cases(max_level=1, max_items=7))
def test_hits_within_the_first_rank_agree(ties):
    assume(any(1 in tie for tie in ties))
    h = histogram_of(ties)
    chance = metrics.precision(h, k=1)[0]
    assert metrics.hit_rate(h, 1)[0] == pytest.approx(chance, abs=1e-14)
    assert metrics.average_precision(h, 1)[0] == pytest.approx(chance, abs=1e-14)
    assert metrics.ndcg(h, 1)[0] == pytest.approx(chance, abs=1e-14)
    assert metrics.reciprocal_rank(h, 1)[0] == pytest.approx(chance, abs=1e-14)


UNDEFINED = {
    "AP": metrics.average_precision,
    "AP@2": lambda h: metrics.average_precision(h, 2),
    "AP(min)@2": lambda h: metrics.average_precision(h, 2, "min"),
    "AP.worst": lambda h: metrics.average_precision_bounds(h)[0],
    "AP.best@2": lambda h: metrics.average_precision_bounds(h, 2)[1],
    "nDCG": metrics.ndcg,
    "nDCG.worst": lambda h: metrics.ndcg_bounds(h)[0],
    "R@2": lambda h: metrics.recall(h, k=2),
    "R@r1": lambda h: metrics.recall(h, radius=1),
    "F1@2": lambda h: metrics.f1(h, k=2),
    "F1@r1": lambda h: metrics.f1(h, radius=1),
    "RR": metrics.reciprocal_rank,
    "RR@2": lambda h: metrics.reciprocal_rank(h, 2),
    "sklearn": metrics.sklearn_average_precision,
}
ZERO = {
    "P@2": lambda h: metrics.precision(h, k=2),
    "P@r1": lambda h: metrics.precision(h, radius=1),
    "Hit@2": lambda h: metrics.hit_rate(h, 2),
    "ACG@r1": lambda h: metrics.cumulative_gain(h, 1),
}


@pytest.mark.parametrize("h", [NOTHING, IRRELEVANT], ids=["nothing", "irrelevant"])
@pytest.mark.parametrize("name", UNDEFINED)
def test_a_query_without_positives_has_no_value(name, h):
    assert np.isnan(UNDEFINED[name](h)).tolist() == [True]


@pytest.mark.parametrize("h", [NOTHING, IRRELEVANT], ids=["nothing", "irrelevant"])
@pytest.mark.parametrize("name", ZERO)
def test_a_query_without_positives_scores_zero_where_that_is_defined(name, h):
    assert ZERO[name](h).tolist() == [0.0]


@pytest.mark.parametrize("name", [*UNDEFINED, *ZERO])
def test_no_queries_give_no_values(name):
    h = TieHistogram(np.zeros((0, 3, 2), np.int64), np.array([0, 1]))
    values = {**UNDEFINED, **ZERO}[name](h)
    assert (values.shape, values.dtype) == ((0,), np.float64)


def test_average_precision_at_a_cutoff_above_every_positive_is_zero():
    h = histogram_of([[0, 0, 0], [1, 1]])
    for normalise in ("retrieved", "min", "total"):
        assert metrics.average_precision(h, 3, normalise).tolist() == [0.0]
        assert [b.tolist() for b in metrics.average_precision_bounds(h, 3, normalise)] == [
            [0.0]
        ] * 2
