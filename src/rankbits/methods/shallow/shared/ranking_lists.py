"""Ranking lists with two levels: what each query of a training set must rank, drawn from y.

A list is all rows but the query itself. Rows that have nothing relevant, or nothing irrelevant, are
not used as queries: all orders of their lists are equally good.
"""

import numpy as np

from rankbits.errors import InputError
from rankbits.methods.supervision import Supervision


class RankingLists:
    """The lists that a set of queries rank: which items are relevant, and which are irrelevant.

    Attributes
    ----------
    is_relevant, is_irrelevant : ndarray of bool, shape (queries, items)
        An item that is neither is not in the list, such as the query itself.
    n_relevant, n_irrelevant : ndarray of int64, shape (queries,)
        R and I, each at least 1.
    first_relevant, first_irrelevant : ndarray of int64, shape (queries,)
        Where the items of a query begin if those of all queries are written in one row.
    longest : int
        Items of the longest list.
    """

    def __init__(self, is_relevant: np.ndarray, is_irrelevant: np.ndarray) -> None:
        self.is_relevant, self.is_irrelevant = is_relevant, is_irrelevant
        self.n_relevant, self.n_irrelevant = is_relevant.sum(axis=1), is_irrelevant.sum(axis=1)
        self.first_relevant = np.cumsum(self.n_relevant) - self.n_relevant
        self.first_irrelevant = np.cumsum(self.n_irrelevant) - self.n_irrelevant
        self.longest = int((self.n_relevant + self.n_irrelevant).max())
        self._kinds = is_relevant * np.uint8(2) + is_irrelevant

    def __len__(self) -> int:
        return len(self.n_relevant)

    def sorted(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cells of the score table, query by query, best score first: relevant, irrelevant."""
        order = np.argsort(-scores, axis=1, kind="stable")
        cells = order + np.arange(len(self))[:, None] * scores.shape[1]
        kinds = self._kinds.ravel()[cells]
        return cells[kinds == 2], cells[kinds == 1]


def draw_lists(
    supervision: Supervision, n_queries: int, rng: np.random.RandomState
) -> tuple[np.ndarray, RankingLists]:
    """Rows that act as queries, and the lists of all other rows that they rank."""
    items, chosen, relevance = np.arange(len(supervision)), [], []
    order = rng.permutation(len(supervision))
    for start in range(0, len(order), n_queries):
        queries = order[start : start + n_queries]
        is_relevant = supervision.levels(queries, items) > 0
        is_relevant[np.arange(len(queries)), queries] = False
        n_relevant = is_relevant.sum(axis=1)
        is_mixed = (n_relevant > 0) & (n_relevant < len(items) - 1)
        chosen.append(queries[is_mixed])
        relevance.append(is_relevant[is_mixed])
        if sum(map(len, chosen)) >= n_queries:
            break
    queries = np.concatenate(chosen)[:n_queries]
    if not len(queries):
        raise InputError(
            "y must give some row both relevant and irrelevant rows to rank, got no such row: all "
            "orders of every list are equally good"
        )
    is_relevant = np.concatenate(relevance)[:n_queries]
    is_irrelevant = ~is_relevant
    is_irrelevant[np.arange(len(queries)), queries] = False
    return queries, RankingLists(is_relevant, is_irrelevant)
