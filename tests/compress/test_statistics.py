"""Intervals: do they hold what another sample of queries shows?"""

import numpy as np
import pytest
from scipy import stats

from rankbits.compress._statistics import large_residual, quality_kept, student_quantile


def skewed_values(rng, n):
    """Most queries lose nothing, one in ten loses half: what re-ranked codes look like."""
    reference = rng.uniform(0.2, 1.0, n)
    return reference, reference * np.where(rng.random(n) < 0.1, 0.5, 1.0)


@pytest.mark.parametrize("n", [30, 200])
def test_the_interval_holds_the_ratio_of_another_sample_in_95_of_100(n):
    rng, n_inside, n_trials = np.random.default_rng(0), 0, 1500
    for _ in range(n_trials):
        reference, values = skewed_values(rng, n)
        kept = quality_kept(values[None], reference, large_residual(values[None], reference))
        reference, values = skewed_values(rng, n)
        n_inside += bool(kept.low[0] <= values.mean() / reference.mean() <= kept.high[0])
    assert 0.935 <= n_inside / n_trials <= 0.99


@pytest.mark.parametrize("rate", [0.01, 0.02, 0.05])
def test_losses_so_rare_that_few_queries_may_show_none_are_held_too(rate):
    """A weaker candidate, which loses more often, says how large a loss may be."""
    rng, n_inside, n_trials = np.random.default_rng(1), 0, 600

    def draw():
        reference = rng.beta(1.2, 1.5, 46)
        is_lost = rng.random((2, 46)) < [[0.3], [rate]]
        return reference, reference * (1 - is_lost * rng.beta(2, 2, (2, 46)))

    for _ in range(n_trials):
        reference, values = draw()
        kept = quality_kept(values[1:], reference, large_residual(values, reference))
        reference, values = draw()
        n_inside += bool(kept.low[0] <= values[1].mean() / reference.mean() <= kept.high[0])
    assert n_inside / n_trials >= 0.94


def test_kept_is_the_ratio_of_the_means_and_the_interval_is_around_it():
    reference, values = np.array([0.5, 1.0, 0.5]), np.array([[0.5, 0.5, 0.5], [0.5, 1.0, 0.5]])
    kept = quality_kept(values, reference, large=0.1)
    assert kept.kept.tolist() == [0.75, 1.0]
    assert kept.value.tolist() == [0.5, 2 / 3]
    assert (kept.low < kept.kept).all()
    assert (kept.high > kept.kept).all()


def test_no_loss_seen_is_no_proof_that_there_is_none():
    reference = np.full(50, 0.8)
    kept = quality_kept(reference[None], reference, large=0.3)
    by_hand = stats.t.ppf(0.975, 49) * np.sqrt(0.3**2 / 50 * 2 / 50)
    assert kept.low[0] == pytest.approx(1 - by_hand)


def test_a_gain_over_the_float_ranking_does_not_raise_the_lower_end():
    rng = np.random.default_rng(1)
    reference = rng.uniform(0.2, 0.6, 40)
    noise = rng.normal(0, 0.05, 40)
    noise -= (noise * 1.0).mean()
    kept = quality_kept(np.stack([reference + noise, 1.2 * reference + noise]), reference, 0.1)
    assert kept.kept[1] == pytest.approx(1.2)
    assert kept.low[1] < 1.0


def test_a_large_residual_is_one_of_the_queries_that_differ():
    reference = np.array([1.0, 1.0, 1.0, 1.0])
    values = np.array([[1.0, 1.0, 1.0, 0.0]])  # kept 0.75: the loser pulls by 0.75
    assert large_residual(values, reference) == pytest.approx(0.75)
    assert large_residual(reference[None], reference) == 1.0


def test_the_quantile_is_that_of_another_library():
    assert student_quantile(19) == pytest.approx(stats.t.ppf(0.975, 19))
