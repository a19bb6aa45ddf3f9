"""Every closed form equals the mean over all orders of tied items."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from oracles import ranking
from oracles.ranking import histogram_of, mean, tied_cases, values, within
from rankbits import TieHistogram, metrics

NORMALISERS = st.sampled_from(["retrieved", "min", "total"])
GAINS, DISCOUNTS = st.sampled_from(["exp", "linear"]), st.sampled_from(["log2", "rsh"])
RANKS = st.integers(1, 14)
CUTOFFS = st.none() | RANKS


def relevant(ties):
    return any(level > 0 for tie in ties for level in tie)


@given(tied_cases(max_items=5), CUTOFFS, NORMALISERS)
def test_average_precision_is_the_mean_over_tie_orders(ties, k, normalise):
    assume(relevant(ties))
    values = metrics.average_precision(histogram_of(ties), k, normalise)
    assert values[0] == pytest.approx(mean(ties, ranking.ap, k, normalise), abs=1e-12, rel=1e-12)


@given(tied_cases(max_items=5), CUTOFFS, NORMALISERS)
@example([[1], [0], [0, 0, 1]], 3, "retrieved")  # best without the positive of the cut tie
@example([[1], [0], [0, 1, 1, 1]], 4, "retrieved")  # best with the fewest that the cut allows
@example([[1], [0], [0, 0, 1, 1]], 4, "retrieved")  # worst with one positive of two
def test_average_precision_bounds_are_the_extremes_over_tie_orders(ties, k, normalise):
    assume(relevant(ties))
    (worst,), (best,) = metrics.average_precision_bounds(histogram_of(ties), k, normalise)
    result = values(ties, ranking.ap, k, normalise)
    assert (worst, best) == pytest.approx((min(result), max(result)), abs=1e-12)


@given(tied_cases(max_level=3), CUTOFFS, GAINS, DISCOUNTS)
def test_ndcg_is_the_mean_over_tie_orders(ties, k, gain, discount):
    assume(relevant(ties))
    values = metrics.ndcg(histogram_of(ties), k, gain, discount)
    assert values[0] == pytest.approx(mean(ties, ranking.ndcg, k, gain, discount), abs=1e-12)


@given(tied_cases(max_level=3), CUTOFFS, GAINS, DISCOUNTS)
def test_ndcg_bounds_are_the_extremes_over_tie_orders(ties, k, gain, discount):
    assume(relevant(ties))
    (worst,), (best,) = metrics.ndcg_bounds(histogram_of(ties), k, gain, discount)
    result = values(ties, ranking.ndcg, k, gain, discount)
    assert (worst, best) == pytest.approx((min(result), max(result)), abs=1e-12)


@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
@given(tied_cases(max_level=2), RANKS)
def test_what_the_first_k_hold_is_the_mean_over_tie_orders(name, ties, k):
    assume(relevant(ties))
    values = getattr(metrics, name)(histogram_of(ties), k=k)
    assert values[0] == pytest.approx(mean(ties, getattr(ranking, name), k), abs=1e-12)


@given(tied_cases(max_items=6), RANKS)
def test_hit_rate_is_the_share_of_tie_orders_with_a_hit(ties, k):
    values = metrics.hit_rate(histogram_of(ties), k)
    assert values[0] == pytest.approx(mean(ties, ranking.hit, k), abs=1e-12)


@given(tied_cases(max_items=6), CUTOFFS)
def test_reciprocal_rank_is_the_mean_over_tie_orders(ties, k):
    assume(relevant(ties))
    value = metrics.reciprocal_rank(histogram_of(ties), k)
    assert value[0] == pytest.approx(mean(ties, ranking.reciprocal_rank, k), abs=1e-12)


@given(tied_cases(max_level=3, max_ties=4), st.integers(0, 3))
def test_lookup_metrics_count_the_ball(ties, radius):
    assume(radius < len(ties))
    h, ball = histogram_of(ties), within(ties, radius)
    hits, n_positives = (
        sum(level > 0 for level in part) for part in (ball, within(ties, len(ties)))
    )
    assert metrics.precision(h, radius=radius)[0] == (hits / len(ball) if ball else 0.0)
    assert metrics.cumulative_gain(h, radius)[0] == pytest.approx(sum(ball) / max(len(ball), 1))
    assert metrics.empty_balls(h, radius)[0] == (not ball)
    if n_positives:
        assert metrics.recall(h, radius=radius)[0] == hits / n_positives
        assert metrics.f1(h, radius=radius)[0] == pytest.approx(
            2 * hits / (len(ball) + n_positives)
        )


@given(tied_cases(max_items=5), tied_cases(max_items=5), RANKS)
def test_queries_do_not_mix(one, other, k):
    assume(len(one) == len(other))
    parts = [histogram_of(one), histogram_of(other)]
    both = TieHistogram.stack(parts)
    for metric in (
        lambda h: metrics.average_precision(h, k),
        lambda h: metrics.average_precision_bounds(h, k)[0],
        lambda h: metrics.ndcg(h, k),
        lambda h: metrics.hit_rate(h, k),
        lambda h: metrics.f1(h, k),
        metrics.reciprocal_rank,
        lambda h: metrics.reciprocal_rank(h, k),
    ):
        alone = np.concatenate([metric(part) for part in parts])
        np.testing.assert_allclose(metric(both), alone, rtol=1e-14)
