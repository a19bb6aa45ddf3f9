"""scikit-learn is an independent reference where it averages over ties, and a subject where not."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from oracles.ranking import histogram_of, tied_cases
from rankbits import metrics


def scores_and_levels(ties):
    scores = [-float(d) for d, tie in enumerate(ties) for _ in tie]
    return np.array(scores), np.array([level for tie in ties for level in tie])


@given(tied_cases(max_level=4, max_ties=6, max_items=12), st.none() | st.integers(1, 80))
def test_linear_ndcg_equals_scikit_learn(ties, k):
    scores, levels = scores_and_levels(ties)
    assume(levels.any() and len(levels) > 1)
    values = metrics.ndcg(histogram_of(ties), k, gain="linear")
    assert values[0] == pytest.approx(ndcg_score([levels], [scores], k=k), abs=1e-12)


@given(tied_cases(max_level=2, max_ties=6, max_items=12))
def test_sklearn_average_precision_is_what_scikit_learn_prints(ties):
    scores, levels = scores_and_levels(ties)
    assume(levels.any())
    expected = average_precision_score(levels > 0, scores)
    assert metrics.sklearn_average_precision(histogram_of(ties))[0] == pytest.approx(
        expected, abs=1e-12
    )


def test_average_precision_without_ties_equals_scikit_learn(rng):
    levels = rng.integers(0, 2, 60)
    ties = [[int(level)] for level in levels]
    expected = average_precision_score(levels, -np.arange(60.0))
    assert metrics.average_precision(histogram_of(ties))[0] == pytest.approx(expected, abs=1e-14)
    for bound in metrics.average_precision_bounds(histogram_of(ties)):
        assert bound[0] == pytest.approx(expected, abs=1e-14)


def test_average_precision_is_the_mean_over_seeded_shuffles(rng):
    n_bits, n_items, n_shuffles = 12, 3000, 400
    distance = np.minimum(rng.binomial(n_bits, 0.35, n_items), n_bits)
    relevant = rng.random(n_items) < np.exp(-distance / 3)
    ties = [relevant[distance == d].astype(int).tolist() for d in range(n_bits + 1)]
    h, drawn = histogram_of(ties), []
    for _ in range(n_shuffles):
        order = rng.permutation(n_items)
        hits = relevant[order][np.argsort(distance[order], kind="stable")]
        precise = hits.cumsum() / np.arange(1, n_items + 1)
        drawn.append(precise[hits].mean())
    (expected,), ((worst,), (best,)) = (
        metrics.average_precision(h),
        metrics.average_precision_bounds(h),
    )
    assert expected == pytest.approx(np.mean(drawn), abs=5 * np.std(drawn) / np.sqrt(n_shuffles))
    assert worst < min(drawn) <= max(drawn) < best


@pytest.mark.parametrize("seed", range(3))
def test_all_items_on_one_code_score_near_the_share_of_positives(seed):
    rng = np.random.default_rng(seed)
    n, p = 5000, int(rng.integers(50, 4000))
    values = metrics.average_precision(histogram_of([[0] * (n - p) + [1] * p, []]))[0]
    assert values == pytest.approx(p / n, abs=0.01)
