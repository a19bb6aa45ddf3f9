"""The ordinary metric of one strict order, by name: what an exact metric is the expectation of.

An order is a list of items, nearest first. Each function takes it with `k` or `radius` and the
options of the metric; items know their distance, their level and their code.
"""

from itertools import chain, groupby, permutations, product
from typing import NamedTuple

from oracles import ranking


class Item(NamedTuple):
    distance: int
    level: int
    code: tuple[int, ...]


def items_of(codes, levels):
    """Items as seen from the query whose bits are all 0."""
    return [Item(sum(code), level, code) for code, level in zip(codes, levels, strict=True)]


def orders(items):
    """Every order that sorts the distances."""
    ranked = sorted(items, key=lambda item: item.distance)
    ties = [list(tie) for _, tie in groupby(ranked, key=lambda item: item.distance)]
    for arrangement in product(*(permutations(tie) for tie in ties)):
        yield list(chain.from_iterable(arrangement))


def retrieved(order, k=None, radius=None):
    return order[:k] if radius is None else [i for i in order if i.distance <= radius]


def n_relevant(items):
    return sum(item.level > 0 for item in items)


def by_levels(metric):
    """A metric of `oracles.ranking`, which reads nothing but the levels."""
    return lambda order, **options: metric([item.level for item in order], **options)


def precision(order, **cut):
    inside = retrieved(order, **cut)
    return n_relevant(inside) / len(inside) if inside else 0.0


def recall(order, **cut):
    return n_relevant(retrieved(order, **cut)) / n_relevant(order)


def f1(order, **cut):
    p, r = precision(order, **cut), recall(order, **cut)
    return 2 * p * r / (p + r) if p + r else 0.0


def mean_level(order, radius):
    levels = [item.level for item in retrieved(order, radius=radius)]
    return sum(levels) / len(levels) if levels else 0.0


def lgap(order, radius):
    query = (0,) * len(order[0].code)
    codes, relevant = [item.code for item in order], [item.level > 0 for item in order]
    return ranking.lgap(query, codes, relevant, radius)


ORDINARY = {
    "AP": by_levels(ranking.ap),
    "nDCG": by_levels(ranking.ndcg),
    "P": precision,
    "R": recall,
    "F1": f1,
    "Hit": by_levels(ranking.hit),
    "RR": by_levels(ranking.reciprocal_rank),
    "ACG": mean_level,
    "LGAP": lgap,
    "CG": lambda order, k: float(sum(item.level for item in order[:k])),
}
