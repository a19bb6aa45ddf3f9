"""The most violated ranking: brute force over all rankings of short lists agrees."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oracles.lwh import feature, ideal, largest_violation, ranking_loss
from rankbits.methods.shallow.shared.ranking_lists import RankingLists
from rankbits.methods.shallow.shared.violated_rankings import LOSSES, most_violated

TIED = st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0])
UNTIED = st.floats(-2, 2, allow_subnormal=False)


def lists_of(relevant):
    is_relevant = np.atleast_2d(np.array(relevant, bool))
    return RankingLists(is_relevant, ~is_relevant)


def short_lists(scores, max_size):
    """Scores and relevance of a list with both kinds of items."""
    items = st.lists(st.tuples(scores, st.booleans()), min_size=2, max_size=max_size)
    return items.filter(lambda pairs: len({relevant for _, relevant in pairs}) == 2)


def ranking_of(weights, scores, relevant):
    """A ranking with these weights: they count the wrong pairs of each item."""
    n_pairs = sum(relevant) * (len(relevant) - sum(relevant))
    wrong = np.rint(weights * n_pairs / 2).astype(int)
    positives = sorted((i for i in range(len(scores)) if relevant[i]), key=lambda i: wrong[i])
    ranking = list(positives)
    n_below = {j: -wrong[j] for j in range(len(scores)) if not relevant[j]}
    for j in sorted(n_below, key=lambda j: n_below[j]):
        place = len(positives) - n_below[j]
        ranking.insert(ranking.index(positives[place]) if n_below[j] else len(ranking), j)
    return tuple(ranking)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scores", [TIED, UNTIED], ids=["tied", "untied"])
def test_no_ranking_of_a_short_list_violates_more(loss, scores):
    @given(short_lists(scores, max_size=6))
    @example([(0.0, True)] * 3 + [(0.0, False)] * 3)
    def check(items):
        values, relevant = map(list, zip(*items, strict=True))
        violated = most_violated(np.array([values]), lists_of(relevant), loss)
        violation = violated.losses[0] - violated.weights[0] @ np.array(values)
        assert violation == pytest.approx(largest_violation(values, relevant, loss), abs=1e-12)

    check()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_relevant", range(1, 7))
@pytest.mark.parametrize("scale", [0.0, 0.1, 0.4, 3.0])
def test_no_ranking_of_7_items_violates_more(loss, n_relevant, scale):
    rng = np.random.default_rng(n_relevant)
    relevant = rng.permutation(np.arange(7) < n_relevant)
    values = scale * rng.integers(-3, 4, 7)
    violated = most_violated(values[None], lists_of(relevant), loss)
    violation = violated.losses[0] - violated.weights[0] @ values
    assert violation == pytest.approx(largest_violation(values, relevant, loss), abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=30)
@given(items=short_lists(TIED, max_size=6), seed=st.integers(0, 99))
def test_weights_and_loss_are_those_of_one_ranking(loss, items, seed):
    values, relevant = map(list, zip(*items, strict=True))
    violated = most_violated(np.array([values]), lists_of(relevant), loss)
    ranking = ranking_of(violated.weights[0], values, relevant)
    assert violated.losses[0] == pytest.approx(ranking_loss(ranking, relevant, loss), abs=1e-12)
    rng = np.random.default_rng(seed)
    query, rows = rng.standard_normal(3), rng.standard_normal((len(values), 3))
    expected = feature(query, rows, ideal(relevant), relevant) - feature(
        query, rows, ranking, relevant
    )
    np.testing.assert_allclose(np.outer(query, violated.weights[0] @ rows), expected, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_lists_of_many_queries_are_searched_as_one_by_one(loss, rng):
    """Of unequal lengths, and with items that are in no list."""
    scores = 0.3 * rng.standard_normal((40, 60))
    is_relevant = rng.random((40, 60)) < rng.uniform(0.05, 0.9, (40, 1))
    is_irrelevant = ~is_relevant & (rng.random((40, 60)) < 0.9)
    is_relevant[:, 0], is_irrelevant[:, 0] = True, False
    is_relevant[:, 1], is_irrelevant[:, 1] = False, True
    together = most_violated(scores, RankingLists(is_relevant, is_irrelevant), loss)
    assert not together.weights[~is_relevant & ~is_irrelevant].any()
    for query in range(40):
        listed = is_relevant[query] | is_irrelevant[query]
        alone = most_violated(
            scores[[query]][:, listed], lists_of(is_relevant[query, listed]), loss
        )
        np.testing.assert_allclose(together.weights[query, listed], alone.weights[0], atol=1e-15)
        assert together.losses[query] == pytest.approx(alone.losses[0], abs=1e-14)


def slots_by_dynamic_program(scores, relevant, loss):
    """The largest violation over all ways to merge two sorted lists, cell by cell: O(R I)."""
    positives = np.sort(scores[relevant])[::-1]
    negatives = np.sort(scores[~relevant])[::-1]
    R, N = len(positives), len(negatives)
    ideal = sum(1 / np.log2(1 + rank) for rank in range(1, R + 1))
    best = np.full((R + 1, N + 1), -np.inf)
    best[0, 0] = 0.0
    for i in range(R + 1):
        for j in range(N + 1):
            if i:
                wrong = -2 * (j * positives[i - 1] - negatives[:j].sum()) / (R * N)
                lost = j / (i + j) / R
                if loss == "ndcg":
                    lost = (1 / np.log2(1 + i) - 1 / np.log2(1 + i + j)) / ideal
                best[i, j] = best[i - 1, j] + lost + wrong
            if j:
                best[i, j] = max(best[i, j], best[i, j - 1])
    return best[R, N]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_relevant", [1, 30, 170])
def test_long_lists_agree_with_a_dynamic_program(loss, n_relevant, rng):
    for scale in (0.02, 0.2, 1.0):
        scores = scale * rng.standard_normal(200)
        relevant = rng.permutation(np.arange(200) < n_relevant)
        violated = most_violated(scores[None], lists_of(relevant), loss)
        expected = slots_by_dynamic_program(scores, relevant, loss)
        assert violated.losses[0] - violated.weights[0] @ scores == pytest.approx(
            expected, abs=1e-11
        )
