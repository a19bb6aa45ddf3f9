"""Structural SVMs of rankings by trying every ranking of a list. Factorial time: tests only.

A list is the scores of its items and which of them are relevant; a ranking is a tuple of items,
best first.
"""

from itertools import permutations, product
from math import log2

import numpy as np


def ranking_loss(ranking, relevant, loss):
    """1 - AP or 1 - NDCG, by definition."""
    ranks = [rank for rank, item in enumerate(ranking, start=1) if relevant[item]]
    if loss == "map":
        return 1.0 - sum(hits / rank for hits, rank in enumerate(ranks, start=1)) / len(ranks)
    ideal = sum(1.0 / log2(1 + rank) for rank in range(1, len(ranks) + 1))
    return 1.0 - sum(1.0 / log2(1 + rank) for rank in ranks) / ideal


def feature(query, rows, ranking, relevant):
    """Ψ: mean of y_ij q (x_i - x_j)' over the pairs of relevant i and irrelevant j."""
    pairs = _pairs(relevant)
    total = np.zeros((len(query), rows.shape[1]))
    for i, j in pairs:
        sign = 1.0 if ranking.index(i) < ranking.index(j) else -1.0
        total += sign * np.outer(query, rows[i] - rows[j])
    return total / len(pairs)


def ideal(relevant):
    """A ranking with all relevant items first."""
    return tuple(sorted(range(len(relevant)), key=lambda item: not relevant[item]))


def largest_violation(scores, relevant, loss):
    """The largest loss(y) - (F(ideal) - F(y)) over all rankings y."""
    pairs = _pairs(relevant)
    values = []
    for ranking in permutations(range(len(scores))):
        place = {item: rank for rank, item in enumerate(ranking)}
        missing = sum(2.0 * (scores[i] - scores[j]) for i, j in pairs if place[j] < place[i])
        values.append(ranking_loss(ranking, relevant, loss) - missing / len(pairs))
    return max(values)


def _pairs(relevant):
    positives = [item for item, is_relevant in enumerate(relevant) if is_relevant]
    negatives = [item for item, is_relevant in enumerate(relevant) if not is_relevant]
    return list(product(positives, negatives))
