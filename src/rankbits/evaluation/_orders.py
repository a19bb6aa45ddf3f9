"""Rankings whose ties something has broken: what tools that must have a strict order look at.

A tie-breaker here is an order of the database: items at one distance follow it. The rank of an
item is then one, plus the nearer items, plus those of its own distance that the order puts first.
Distances are small integers, so a stable argsort is a counting sort, linear in the items.

Notation:
    order  permutation of the database rows, or None for the one that numpy's default argsort leaves
    rank   place of an item, from 1     hit  how many relevant items stand at that rank or before
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rankbits.affinity import Affinity, Classes, Tags
from rankbits.codes import BinaryCodes, hamming_distances

_BLOCK_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class RelevantRanks:
    """Where the relevant items of some queries stand: an entry for each, by query and rank."""

    query: np.ndarray  # which of the queries, from 0
    rank: np.ndarray
    hit: np.ndarray
    level: np.ndarray  # position in the affinity's levels
    n_relevant: np.ndarray  # relevant items of each query

    def average_precision(self, k: int | None = None, normalise: str = "total") -> np.ndarray:
        """AP of each query in this order: sum of hit / rank over the ranks up to k, divided.

        The divisor is the hits up to k ("retrieved"), min(relevant, k) ("min") or all relevant
        items ("total"); without k they are one. No hit up to k scores 0; NaN where nothing is
        relevant.
        """
        is_inside = self.rank <= (np.inf if k is None else k)
        query, n_queries = self.query[is_inside], len(self.n_relevant)
        precision = self.hit[is_inside] / self.rank[is_inside]
        divisor = {
            "retrieved": np.bincount(query, minlength=n_queries),
            "min": self.n_relevant if k is None else np.minimum(self.n_relevant, k),
            "total": self.n_relevant,
        }[normalise]
        total = np.bincount(query, weights=precision, minlength=n_queries)
        return np.where(self.n_relevant > 0, total / np.maximum(divisor, 1), np.nan)

    def discounted_gain(self, gains: np.ndarray, discounts: np.ndarray) -> np.ndarray:
        """DCG of each query in this order: sum of gains[level] * discounts[rank - 1].

        0 where nothing is relevant.
        """
        added = gains[self.level] * discounts[self.rank - 1]
        return np.bincount(self.query, weights=added, minlength=len(self.n_relevant))


Score = Callable[[RelevantRanks], np.ndarray]
Progress = Callable[[int, int], None]


def relevant_ranks(ranked: np.ndarray) -> RelevantRanks:
    """Read off the relevant items of rankings: `ranked` has the level of each rank, row by query.

    >>> ranks = relevant_ranks(np.array([[0, 1, 1, 0]]))
    >>> ranks.rank.tolist(), ranks.average_precision().round(3).tolist()
    ([2, 3], [0.583])
    """
    flat = np.flatnonzero(ranked != 0)
    query, place = np.divmod(flat, ranked.shape[1])
    n_relevant = np.bincount(query, minlength=len(ranked))
    before = np.cumsum(n_relevant) - n_relevant
    hit = np.arange(1, len(flat) + 1) - before[query]
    return RelevantRanks(query, place + 1, hit, ranked.ravel()[flat], n_relevant)


def ranked_levels(
    distances: np.ndarray, levels: np.ndarray, order: np.ndarray | None
) -> np.ndarray:
    """Level of the item at each rank, ties broken by `order`; all arrays are (queries, items)."""
    if order is None:  # as hashing code does it: float distances, no kind, so an unstable sort
        ranking = np.argsort(distances.astype(np.float32), axis=1)
    else:
        distances, levels = np.take(distances, order, axis=1), np.take(levels, order, axis=1)
        ranking = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(levels, ranking, axis=1)


def score_orders(
    queries: BinaryCodes,
    database: BinaryCodes,
    affinity: Affinity,
    orders: Mapping[str, np.ndarray | None],
    scores: Mapping[str, Score],
    own_items: np.ndarray | None = None,
    progress: Progress | None = None,
) -> dict[str, dict[str, np.ndarray]]:
    """Scores of each query by name of order and of score, in blocks of queries.

    `own_items` names an item of each query that does not count (-1: none), as in `count_ties`;
    `progress` is called with (queries done, queries in all).
    """
    n_queries, step = len(queries), max(1, _BLOCK_CELLS // len(database))
    table = {order: {score: np.empty(n_queries) for score in scores} for order in orders}
    for start in range(0, n_queries, step):
        rows = slice(start, min(start + step, n_queries))
        distances = _narrow(hamming_distances(queries[rows], database), queries.n_bits)
        levels = affinity.indices(rows, slice(0, len(database)))
        if own_items is not None:
            levels = levels.copy()  # a dense affinity hands out its own matrix
            _put_last(own_items[rows], distances, levels, queries.n_bits + 1)
        for name, order in orders.items():
            ranks = relevant_ranks(ranked_levels(distances, levels, order))
            for score, function in scores.items():
                table[name][score][rows] = function(ranks)
        if progress is not None:
            progress(rows.stop, n_queries)
    return table


def gain_table(levels: np.ndarray, gain: str) -> np.ndarray:
    """Gain of each level: 2^v - 1 ("exp") or v ("linear")."""
    return np.exp2(levels) - 1.0 if gain == "exp" else levels.astype(float)


def discount_table(n_items: int, discount: str) -> np.ndarray:
    """Discount of each rank r: 1 / log2(r + 1) ("log2"), or 1, then 1 / log2(r) ("rsh")."""
    ranks = np.arange(1, n_items + 1)
    return 1.0 / np.log2(ranks + 1 if discount == "log2" else np.maximum(ranks, 2))


def ideal_gain(n_by_level: np.ndarray, gains: np.ndarray, discounts: np.ndarray) -> np.ndarray:
    """DCG of each query with its items sorted by gain, from the counts of its levels alone.

    0 where nothing is relevant.
    """
    descending = n_by_level[:, ::-1]
    last = descending.cumsum(axis=1)
    summed = np.concatenate([[0.0], discounts.cumsum()])
    ideal: np.ndarray = ((summed[last] - summed[last - descending]) * gains[::-1]).sum(axis=1)
    return ideal


def class_order(affinity: Affinity) -> np.ndarray | None:
    """The database sorted by class, or by rows of tags; None for affinities without labels."""
    if isinstance(affinity, Classes):
        return np.argsort(affinity.database_labels, kind="stable")
    if isinstance(affinity, Tags):
        rows = affinity.database_rows(slice(None))
        return np.lexsort(rows.T[::-1])
    return None


def document_id_order(n_items: int) -> np.ndarray:
    """Row numbers as trec_eval breaks ties: by document id as a string, descending.

    >>> document_id_order(12).tolist()
    [9, 8, 7, 6, 5, 4, 3, 2, 11, 10, 1, 0]
    """
    return np.argsort(np.arange(n_items).astype(np.str_))[::-1]


def _narrow(distances: np.ndarray, n_bits: int) -> np.ndarray:
    """Bytes where they hold every distance and one more: they sort in one pass."""
    return distances.astype(np.uint8) if n_bits < 255 else distances


def _put_last(own: np.ndarray, distances: np.ndarray, levels: np.ndarray, beyond: int) -> None:
    """Make each query's own item irrelevant and farther than any other: it changes no score."""
    rows = np.flatnonzero(own >= 0)
    distances[rows, own[rows]] = beyond
    levels[rows, own[rows]] = 0
