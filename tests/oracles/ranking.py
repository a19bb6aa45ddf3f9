"""Ranking metrics by enumeration of every order of tied items. Factorial time: tests only.

A case is a list of ties, nearest first; a tie is the list of the affinity levels of its items. An
order is one flat list of levels, as a sort by distance could leave it.
"""

from fractions import Fraction
from itertools import permutations, product
from math import fsum, log2

import numpy as np
from hypothesis import strategies as st

from rankbits import TieHistogram


def tied_cases(max_level=1, max_ties=3, max_items=4):
    """Hypothesis strategy: a few ties with a few items, some ties empty."""
    tie = st.lists(st.integers(0, max_level), max_size=max_items)
    return st.lists(tie, min_size=2, max_size=max_ties).filter(any)


def histogram_of(ties, max_level=None):
    """The tie histogram of one query whose items at distance d have the levels ties[d]."""
    top = max((level for tie in ties for level in tie), default=0)
    levels = np.arange(max(top, max_level or 1) + 1)
    counts = [[tie.count(level) for level in levels] for tie in ties]
    return TieHistogram(np.array([counts]), levels)


def orders(ties):
    """Every order that sorts the distances; each is equally likely."""
    arrangements = [sorted(set(permutations(tie))) for tie in ties]
    return [sum(parts, ()) for parts in product(*arrangements)]


def values(ties, metric, *args):
    """The metric of every order."""
    return [metric(order, *args) for order in orders(ties)]


def mean(ties, metric, *args):
    found = values(ties, metric, *args)
    return fsum(found) / len(found)


def ap(order, k=None, normalise="retrieved"):
    k = len(order) if k is None else k
    hits, total = 0, Fraction(0)
    for rank, level in enumerate(order[:k], start=1):
        if level > 0:
            hits += 1
            total += Fraction(hits, rank)
    n_positives = sum(level > 0 for level in order)
    divisor = {"retrieved": hits, "min": min(n_positives, k), "total": n_positives}[normalise]
    return float(total / divisor) if divisor else 0.0


def dcg(order, k, gain, discount):
    total = []
    for rank, level in enumerate(order[:k], start=1):
        share = 1.0 / log2(rank + 1)
        if discount == "rsh":
            share = 1.0 if rank == 1 else 1.0 / log2(rank)
        total.append((2**level - 1 if gain == "exp" else level) * share)
    return fsum(total)


def ndcg(order, k=None, gain="exp", discount="log2"):
    ideal = sorted(order, reverse=True)
    return dcg(order, k, gain, discount) / dcg(ideal, k, gain, discount)


def precision(order, k):
    return sum(level > 0 for level in order[:k]) / len(order[:k])


def recall(order, k):
    return sum(level > 0 for level in order[:k]) / sum(level > 0 for level in order)


def f1(order, k):
    p, r = precision(order, k), recall(order, k)
    return 2.0 * p * r / (p + r) if p + r else 0.0


def hit(order, k):
    return float(any(order[:k]))


def reciprocal_rank(order, k=None):
    return next((1.0 / rank for rank, level in enumerate(order[:k], start=1) if level), 0.0)


def within(ties, radius):
    """Levels of the items within the radius; every order retrieves the same ones."""
    return [level for tie in ties[: radius + 1] for level in tie]


def lgap(query, database, relevant, radius):
    """LGAP of one query by its definition; codes are tuples of bits."""
    total = 0.0
    for k in range(radius + 1):
        codes = list(product((0, 1), repeat=len(query)))
        ball = [code for code in codes if _distance(code, query) <= k]
        inside = [i for i, code in enumerate(database) if _distance(code, query) <= k]
        if inside:
            precise = sum(relevant[i] for i in inside) / len(inside)
            largest = max(sum(database[i] == code for i in inside) for code in ball)
            total += precise * len(inside) / (largest * len(ball))
    return total / (radius + 1)


def _distance(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True))
