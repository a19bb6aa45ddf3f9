"""The recommendation: smallest first, and judged on queries that it did not see."""

import numpy as np
import pytest

from rankbits.compress._choice import choose, divide_queries, judged_queries, recommend


@pytest.mark.parametrize("n_queries", [20, 93, 400, 1001])
def test_no_query_is_judged_by_a_choice_that_saw_it(n_queries):
    divisions = divide_queries(n_queries, seed=3)
    for division in divisions:
        assert not np.intersect1d(division.choosing, division.judging).size
        assert len(division.choosing) + len(division.judging) == n_queries
    judged = judged_queries(divisions)
    assert len(judged) == len(np.unique(judged)) == (n_queries if n_queries < 400 else
                                                     n_queries - n_queries // 2)  # fmt: skip


def test_the_first_in_order_that_keeps_enough_is_chosen():
    rng = np.random.default_rng(0)
    reference = rng.uniform(0.4, 0.6, 100)
    values = np.stack([share * reference for share in (1.0, 0.5, 0.99, 0.98)])
    order = np.array([1, 3, 2, 0])  # the third is the cheapest that keeps enough
    assert choose(values, reference, order, 0.9) == 3
    assert choose(values, reference, order[:1], 0.9) == 1  # nothing does: the nearest


def test_a_recommendation_holds_only_if_its_lower_end_does():
    rng = np.random.default_rng(0)
    reference = rng.uniform(0.4, 0.6, 100)
    values = np.stack([0.9 * reference, 0.97 * reference + rng.normal(0, 0.02, 100)])
    divisions = divide_queries(100, seed=0)
    choice = recommend(values, reference, np.array([0, 1]), 0.95, divisions)
    assert (choice.place, choice.holds) == (1, True)
    assert choice.kept.low[0] >= 0.95
    none = recommend(values[:1], reference, np.array([0]), 0.95, divisions)
    assert (none.place, none.holds) == (0, False)


def test_what_is_printed_about_the_luckiest_of_many_is_not_its_luck():
    """All candidates truly keep 0.9; the best of 30 looks far better on the queries at hand."""
    printed, at_hand = [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        reference = np.full(60, 0.5)
        values = 0.45 + rng.normal(0, 0.15, (30, 60))
        choice = recommend(values, reference, np.arange(30), 0.99, divide_queries(60, seed))
        printed.append(choice.kept.kept[0])
        at_hand.append(values.mean(axis=1).max() / 0.5)
    assert np.mean(at_hand) > 0.96
    assert abs(np.mean(printed) - 0.9) < 0.025
