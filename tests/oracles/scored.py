"""Metrics by name of rankings by score, as means over every order of items with equal scores."""

from itertools import groupby

import pytest

from oracles import ranking

ORDINARY = {  # each metric as a function of one order of levels
    "AP": ranking.ap,
    "AP@3": lambda order: ranking.ap(order, 3),
    "AP(min)@3": lambda order: ranking.ap(order, 3, "min"),
    "AP(total)@3": lambda order: ranking.ap(order, 3, "total"),
    "nDCG": ranking.ndcg,
    "nDCG(linear)@2": lambda order: ranking.ndcg(order, 2, "linear"),
    "nDCG(rsh)@4": lambda order: ranking.ndcg(order, 4, "linear", "rsh"),
    "P@3": lambda order: ranking.precision(order, 3),
    "R@2": lambda order: ranking.recall(order, 2),
    "F1@3": lambda order: ranking.f1(order, 3),
    "Hit@2": lambda order: ranking.hit(order, 2),
    "RR": ranking.reciprocal_rank,
    "RR@2": lambda order: ranking.reciprocal_rank(order, 2),
}
BOUNDS = ("AP", "AP@3", "nDCG", "nDCG(linear)@2")


def ties_by_score(scores, levels):
    """The levels of each tie, largest score first."""
    ranked = sorted(zip(scores, levels, strict=True), key=lambda pair: -pair[0])
    return [[level for _, level in tie] for _, tie in groupby(ranked, key=lambda pair: pair[0])]


def with_bound(name, bound):
    metric, at, cut = name.partition("@")
    return f"{metric}.{bound}{at}{cut}"


NAMES = [*ORDINARY, *(with_bound(name, bound) for name in BOUNDS for bound in ("best", "worst"))]


def require_means_over_orders(evaluation, query, ties):
    """The evaluation of NAMES has, for this query, the mean and the bounds over all orders."""
    per_query = evaluation.per_query
    for name, metric in ORDINARY.items():
        expected = ranking.mean(ties, metric)
        assert per_query[name][query] == pytest.approx(expected, abs=1e-12), name
    for name in BOUNDS:
        values = ranking.values(ties, ORDINARY[name])
        for bound, expected in (("best", max(values)), ("worst", min(values))):
            value = per_query[with_bound(name, bound)][query]
            assert value == pytest.approx(expected, abs=1e-12), (name, bound)
