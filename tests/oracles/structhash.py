"""StructHash by its definition: every ranking of a list is tried. Factorial time: tests only."""

from itertools import permutations, product

import numpy as np

from oracles.lwh import ranking_loss


def feature(query, items, ranking, relevant):
    """Mean over relevant i, irrelevant j of y_ij ([q, j differ] - [q, i differ]), for each bit."""
    place = {item: rank for rank, item in enumerate(ranking)}
    positives = [i for i in range(len(items)) if relevant[i]]
    negatives = [j for j in range(len(items)) if not relevant[j]]
    total = np.zeros(len(query))
    for i, j in product(positives, negatives):
        sign = 1 if place[i] < place[j] else -1
        total += sign * ((query != items[j]) * 1.0 - (query != items[i]))
    return total / (len(positives) * len(negatives))


def loss_of(ranking, relevant, loss):
    """1 - AUC is the share of pairs in the wrong order; the others as for LWH."""
    if loss != "auc":
        return ranking_loss(ranking, relevant, loss)
    pairs = [
        (above, below) for place, above in enumerate(ranking) for below in ranking[place + 1 :]
    ]
    mixed = [(above, below) for above, below in pairs if relevant[above] != relevant[below]]
    return sum(relevant[below] for _, below in mixed) / len(mixed)


def largest_slack(query, items, relevant, weights, loss):
    """The largest loss(y) - w'(ψ(ideal) - ψ(y)) over all rankings y of one list."""
    rankings = list(permutations(range(len(items))))
    ideal = next(y for y in rankings if loss_of(y, relevant, "auc") == 0)
    best = weights @ feature(query, items, ideal, relevant)
    return max(
        loss_of(y, relevant, loss) - best + weights @ feature(query, items, y, relevant)
        for y in rankings
    )
