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


def noisy(shares, seed=0, n=100):
    """A reference and candidates that keep these shares of it, with a little noise."""
    rng = np.random.default_rng(seed)
    reference = rng.uniform(0.4, 0.6, n)
    return reference, np.stack([share * reference for share in shares]) + rng.normal(
        0, 0.01, (len(shares), n)
    )


def test_the_shortest_length_and_then_the_smallest_pool_that_keep_enough_are_chosen():
    short, long = [np.array([0, 1, 2])], [np.array([3, 4, 5])]
    reference, values = noisy([0.5, 0.6, 0.7, 0.8, 0.97, 0.99])
    assert choose(values, reference, [short, long], 0.9) == 4
    reference, values = noisy([0.5, 0.97, 0.99, 0.98, 0.98, 0.99])
    assert choose(values, reference, [short, long], 0.9) == 1
    reference, values = noisy([0.97, 0.97, 0.99])
    assert choose(values, reference, [short], 0.9) == 0
    reference, values = noisy([0.5, 0.6, 0.7])  # nothing does: the nearest
    assert choose(values, reference, [short], 0.9) == 2


def test_a_pool_that_falls_short_ends_the_walk_to_smaller_ones():
    """A smaller pool that keeps more than a larger one owes it to the sample."""
    reference, values = noisy([0.99, 0.8, 0.98, 0.99])
    assert choose(values, reference, [[np.arange(4)]], 0.9) == 2


def test_one_way_competes_at_each_length_the_best_over_all_pools():
    reference, values = noisy([0.97, 0.6, 0.99, 0.9, 0.95, 0.99])
    lucky, good = np.array([0, 1, 2]), np.array([3, 4, 5])
    assert choose(values, reference, [[lucky, good]], 0.93) == 4


def test_a_recommendation_holds_only_if_its_lower_end_does():
    reference, values = noisy([0.9, 0.97])
    divisions = divide_queries(100, seed=0)
    choice = recommend(values, reference, [[np.array([0, 1])]], 0.95, divisions)
    assert (choice.place, choice.holds) == (1, True)
    assert choice.kept.low[0] >= 0.95
    none = recommend(values[:1], reference, [[np.array([0])]], 0.95, divisions)
    assert (none.place, none.holds) == (0, False)


def test_what_is_printed_about_the_luckiest_of_many_is_not_its_luck():
    """All candidates truly keep 0.9; the best of 30 looks far better on the queries at hand."""
    printed, at_hand = [], []
    paths = [[np.array([place])] for place in range(30)]
    for seed in range(25):
        rng = np.random.default_rng(seed)
        reference = np.full(60, 0.5)
        values = 0.45 + rng.normal(0, 0.15, (30, 60))
        choice = recommend(values, reference, paths, 0.99, divide_queries(60, seed))
        printed.append(choice.kept.kept[0])
        at_hand.append(values.mean(axis=1).max() / 0.5)
    assert np.mean(at_hand) > 0.96
    assert abs(np.mean(printed) - 0.9) < 0.025
