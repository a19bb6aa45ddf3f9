"""The most violated ranking: the one that a structural SVM of rankings must push down next.

A query has R relevant and I irrelevant items with scores s. A ranking y is compared with the ideal
one, all relevant items first, by its loss and by how much less it scores:

    H(y) = loss(y) - (2 / (R I)) sum of s_i - s_j over pairs with irrelevant j above relevant i

It is largest for a ranking that keeps the order of scores among relevant and among irrelevant items
[1]_, so the ranking is known once the irrelevant item j = 1..I has its slot k_j: the relevant items
above it. With i = 1..R and J_i the irrelevant items above relevant item i, all losses add up over
the pairs that stand the wrong way:

    map   1 - AP      sum_i J_i / (R (i + J_i))             j adds (P(j, R) - P(j, k)) / R
    ndcg  1 - NDCG    sum_i (D(i) - D(i + J_i)) / Z         j adds (D(k + j) - D(R + j)) / Z
    auc   1 - AUC     sum_i J_i / (R I)                     j adds (R - k) / (R I)

    P(j, k) = 1 + 1/2 + ... + 1/(k + j - 1) + j / (k + j),  D(r) = 1 / log2(1 + r),
    Z = D(1) + ... + D(R)

So each j has a best slot of its own, and the value of a slot is known in O(1) from sums of scores.
Best slots never fall with j, since what a pair adds does not rise with j. They are found by
halving: the middle item looks at all slots, the items before it only at slots up to its own, those
after it only at slots from there on. This takes O(n log n) for a query; all queries are searched at
once.

.. [1] Y. Yue, T. Finley, F. Radlinski and T. Joachims, "A support vector method for optimizing
   average precision", SIGIR 2007.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankbits.methods.shallow.shared.ranking_lists import RankingLists

LOSSES = ("map", "ndcg")


@dataclass(frozen=True, eq=False)
class Violation:
    """The most violated ranking of each query.

    Attributes
    ----------
    weights : ndarray of shape (queries, items)
        The ideal ranking scores sum(weights * scores) more than this one.
    losses : ndarray of shape (queries,)
    """

    weights: np.ndarray
    losses: np.ndarray


def most_violated(scores: np.ndarray, lists: RankingLists, loss: str) -> Violation:
    """The ranking of each query with the largest loss(y) - sum(weights * scores)."""
    relevant, irrelevant = lists.sorted(scores)
    flat = scores.ravel()
    slots = _Search(flat[relevant], flat[irrelevant], lists, loss).best_slots()
    n_relevant, n_irrelevant = lists.n_relevant, lists.n_irrelevant
    n_above = _irrelevant_above(slots, lists)
    share = 2.0 / (n_relevant * n_irrelevant)
    weights = np.zeros(scores.size)
    weights[relevant] = n_above * np.repeat(share, n_relevant)
    weights[irrelevant] = (slots - np.repeat(n_relevant, n_irrelevant)) * np.repeat(
        share, n_irrelevant
    )
    return Violation(weights.reshape(scores.shape), _losses(n_above, lists, loss))


class _Search:
    """The best slot of every irrelevant item, by halving; of equally good slots the highest.

    A node is a run of irrelevant items of one query, numbers first to last - 1 from 0, whose slots
    are known to lie between low and high.
    """

    def __init__(
        self, relevant: np.ndarray, irrelevant: np.ndarray, lists: RankingLists, loss: str
    ) -> None:
        self.lists = lists
        self.sums = np.concatenate([[0.0], np.cumsum(relevant)])
        self.scores = irrelevant
        self.saved, self.unit = _saved_loss(lists, loss)

    def best_slots(self) -> np.ndarray:
        """k_j of all irrelevant items, query by query, best score first."""
        slots = np.zeros(len(self.scores), np.int64)
        n_relevant, n_irrelevant = self.lists.n_relevant, self.lists.n_irrelevant
        nothing = np.zeros_like(n_relevant)
        nodes = np.stack([np.arange(len(nothing)), nothing, n_irrelevant, nothing, n_relevant])
        while nodes.shape[1]:
            query, first, last, low, high = nodes
            middle = (first + last) // 2
            best = self._best(query, middle, low, high)
            slots[self.lists.first_irrelevant[query] + middle] = best
            above = np.stack([query, first, middle, low, best])
            below = np.stack([query, middle + 1, last, best, high])
            nodes = self._unsolved(np.concatenate([above, below], axis=1), slots)
        return slots

    def _best(
        self, query: np.ndarray, middle: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> np.ndarray:
        """The best of the slots low..high for the item `middle` of each node.

        The value of slot k is -(R I) loss + 2 (sum of the k best relevant scores - k s_j), up to a
        term that does not depend on k.
        """
        width = high - low + 1
        start = np.cumsum(width) - width
        node = np.repeat(np.arange(len(query)), width)
        slot = np.arange(len(node)) - (start - low)[node]
        item_score = self.scores[self.lists.first_irrelevant[query] + middle]
        value = self.sums[slot + self.lists.first_relevant[query][node]] - slot * item_score[node]
        value += value
        value -= self.unit[query][node] * self.saved((middle + 1)[node], slot)
        is_top = np.flatnonzero(value == np.maximum.reduceat(value, start)[node])
        best: np.ndarray = slot[is_top[np.searchsorted(is_top, start)]]
        return best

    def _unsolved(self, nodes: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """The nodes still to be searched; where low equals high, the slots are known and stored."""
        query, first, last, low, high = nodes
        size = np.where(low == high, last - first, 0)
        begin = self.lists.first_irrelevant[query] + first - (np.cumsum(size) - size)
        slots[np.arange(size.sum()) + np.repeat(begin, size)] = np.repeat(low, size)
        return nodes[:, (first < last) & (low < high)]


def _saved_loss(
    lists: RankingLists, loss: str
) -> tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], np.ndarray]:
    """What slot k saves item j of the loss, as a function of (j, k), and the unit of each query.

    In units of 1 / (R I): P(j, k) times I for map, -D(k + j) times R I / Z for ndcg, k for auc.
    """
    if loss == "auc":
        return lambda j, k: k, np.ones(len(lists))
    if loss == "ndcg":
        discount = _discounts(lists.longest)
        ideal = np.cumsum(discount)[lists.n_relevant]
        return lambda j, k: -discount[k + j], lists.n_relevant * lists.n_irrelevant / ideal
    inverse = np.concatenate([[0.0], 1.0 / np.arange(1, lists.longest + 1)])
    harmonic = np.cumsum(inverse)
    return lambda j, k: harmonic[k + j - 1] + j * inverse[k + j], lists.n_irrelevant.astype(float)


def _irrelevant_above(slots: np.ndarray, lists: RankingLists) -> np.ndarray:
    """J_i of every relevant item, query by query: the irrelevant items with k_j < i."""
    n_slots = lists.n_relevant + 1
    place = np.repeat(np.cumsum(n_slots) - n_slots, lists.n_irrelevant) + slots
    filled = np.bincount(place, minlength=int(n_slots.sum())).cumsum()
    query = np.repeat(np.arange(len(lists)), lists.n_relevant)
    above: np.ndarray = filled[np.arange(len(query)) + query] - lists.first_irrelevant[query]
    return above


def _losses(n_above: np.ndarray, lists: RankingLists, loss: str) -> np.ndarray:
    """The loss of each query from the J_i of its relevant items."""
    ranks = np.arange(1, len(n_above) + 1) - np.repeat(lists.first_relevant, lists.n_relevant)
    if loss == "map":
        added, total = n_above / (ranks + n_above), lists.n_relevant
    elif loss == "auc":
        added, total = n_above.astype(np.float64), lists.n_relevant * lists.n_irrelevant
    else:
        discount = _discounts(lists.longest)
        added = discount[ranks] - discount[ranks + n_above]
        total = np.cumsum(discount)[lists.n_relevant]
    losses: np.ndarray = np.add.reduceat(added, lists.first_relevant) / total
    return losses


def _discounts(longest: int) -> np.ndarray:
    """D(r) at place r; place 0 is not used."""
    return np.concatenate([[0.0], 1.0 / np.log2(np.arange(2, longest + 2))])
