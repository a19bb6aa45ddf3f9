import importlib
from itertools import product

import numpy as np
import pytest
from scipy.stats import ttest_rel

from rankbits.errors import InputError
from rankbits.evaluation import compare


def difference(a, b, **options):
    result = compare({"AP": np.array(a, float)}, {"AP": np.array(b, float)}, **options)
    return result.metrics["AP"]


@pytest.mark.parametrize("seed", range(5))
def test_the_t_test_is_scipys(seed):
    rng = np.random.default_rng(seed)
    a = rng.random(30)
    b = a + rng.normal(0.02, 0.1, 30)
    values, reference = difference(a, b), ttest_rel(b, a)
    assert values.t == pytest.approx(reference.statistic, rel=1e-12)
    assert values.p_t == pytest.approx(reference.pvalue, rel=1e-9)


def exact_bootstrap(d):
    """Every resample of d, each as likely as any other: the 95 % interval and the two-sided p."""
    d = np.array(d, float)
    means = np.array([np.mean(draw) for draw in product(d, repeat=len(d))])
    p = np.mean(np.abs(means - d.mean()) >= abs(d.mean()) - 1e-12)
    return *np.quantile(means, [0.025, 0.975], method="inverted_cdf"), p


@pytest.mark.parametrize(
    "d", [[0.0, 0.0, 3.0], [1.0, 2.0, 4.0, -1.0], [-0.3, -0.1, 0.05, -0.2, 0.1], [1.0, -1.0]]
)
def test_the_bootstrap_agrees_with_all_resamples(d):
    n_resamples = 40_000
    low, high, p = exact_bootstrap(d)
    values = difference(np.zeros(len(d)), d, n_resamples=n_resamples)
    assert values.p_bootstrap == pytest.approx(p, abs=5 * np.sqrt(0.25 / n_resamples))
    assert (values.low, values.high) == pytest.approx((low, high), abs=1e-9)


def test_the_interval_covers_the_true_difference_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    n_runs, hits, rejections = 400, 0, 0
    for _ in range(n_runs):
        a = rng.random(60)
        values = difference(a, a + rng.normal(0.1, 0.4, 60), n_resamples=400)
        hits += values.low <= 0.1 <= values.high
        null = difference(a, a + rng.normal(0.0, 0.4, 60), n_resamples=400)
        rejections += null.p_bootstrap <= 0.05
    assert 0.91 < hits / n_runs < 0.98
    assert 0.02 < rejections / n_runs < 0.09


def test_means_differences_and_counts_are_those_of_the_queries_both_define():
    nan = np.nan
    values = difference([0.1, 0.5, nan, 0.2, 0.9], [0.3, 0.5, 0.7, nan, 0.6])
    assert (values.queries, values.left_out) == (3, 2)
    assert (values.wins, values.ties, values.losses) == (1, 1, 1)
    assert values.mean_a == pytest.approx(0.5)
    assert values.mean_b == pytest.approx(1.4 / 3)
    assert values.difference == pytest.approx(-0.1 / 3)


def test_identical_values_have_p_1():
    values = difference([0.2, 0.7, 0.7], [0.2, 0.7, 0.7])
    assert (values.difference, values.low, values.high) == (0, 0, 0)
    assert (values.p_bootstrap, values.t, values.p_t) == (1, 0, 1)


def test_a_constant_difference_is_certain():
    values = difference([0.25, 0.5, 0.75], [0.0, 0.25, 0.5], n_resamples=99)
    assert (values.low, values.high) == (-0.25, -0.25)
    assert (values.p_bootstrap, values.t, values.p_t) == (0.01, -np.inf, 0)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_queries_decide_nothing(n):
    values = difference(np.zeros(n), np.ones(n))
    assert values.queries == n
    assert np.isnan([values.low, values.high, values.p_bootstrap, values.t, values.p_t]).all()
    assert np.isnan(values.difference) == (n == 0)


def test_a_seed_repeats_and_another_does_not_and_metrics_do_not_disturb_each_other():
    rng = np.random.default_rng(1)
    a, b, c = rng.random((3, 50))
    alone = difference(a, b, random_state=5)
    assert alone == difference(a, b, random_state=5)
    assert alone != difference(a, b, random_state=6)
    both = compare({"RR": c, "AP": a}, {"RR": b, "AP": b}, random_state=5)
    assert both.metrics["AP"] == alone


def test_resampling_in_blocks_keeps_to_the_count(monkeypatch):
    monkeypatch.setattr(importlib.import_module("rankbits.evaluation._compare"), "_CELLS", 64)
    values = difference([0.0, 0.0, 0.0], [0.25, 0.25, 0.25], n_resamples=999)
    assert values.p_bootstrap == 1 / 1000


def test_json_has_no_nan_and_no_infinity():
    result = compare({"AP": np.array([0.0, 0.0]), "RR": np.array([np.nan])},
                    {"AP": np.array([0.5, 0.5]), "RR": np.array([0.5])}).to_dict()  # fmt: skip
    assert result["metrics"]["AP"]["t"] == "inf"
    assert result["metrics"]["RR"]["difference"] is None
    assert result["metrics"]["RR"]["left_out"] == 1
    assert (result["interval"], result["resamples"], result["seed"]) == (0.95, 10_000, 0)


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ({"AP": [0.1]}, {"RR": [0.1]}, "share a metric, got AP and RR"),
        ({"AP": [0.1]}, {"AP": [0.1, 0.2]}, "same queries, AP has 1 values in a and 2 in b"),
        ({"AP": [[0.1]]}, {"AP": [0.1]}, "a must have one finite number or NaN per query for AP"),
        ({"AP": [0.1]}, {"AP": [np.inf]}, "b must have one finite number"),
        ({"AP": [0.1]}, {"AP": ["x"]}, "b must have one finite number"),
        ([0.1], {"AP": [0.1]}, "a must be an Evaluation or a dict"),
    ],
)
def test_what_cannot_be_paired_is_refused(a, b, reason):
    with pytest.raises(InputError, match=reason):
        compare(a, b)


def test_resamples_and_seed_are_checked():
    with pytest.raises(InputError, match="n_resamples must be an integer >= 1, got 0"):
        difference([0.1], [0.2], n_resamples=0)
    with pytest.raises(InputError, match="random_state must be an integer >= 0, got -1"):
        difference([0.1], [0.2], random_state=-1)
