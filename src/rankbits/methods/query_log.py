"""Queries as rows of their own, and what is relevant to them among the items: a query log.

Queries are not items: no query is in its own list, and only items are ranked.
"""

from typing import Any

import numpy as np

from rankbits import _check
from rankbits.affinity import Affinity
from rankbits.errors import InputError
from rankbits.methods.supervision import Supervision, even_sample, rank_by_distance

_BLOCK_CELLS = 1 << 22


class QueryLog(Supervision):
    """Levels between logged queries and items; `rows` says which queries it is about."""

    def __init__(self, relation: Affinity, rows: np.ndarray, kind: str = "judgements") -> None:
        super().__init__(kind, relation, rows)
        self.n_items = relation.shape[1]

    def take(self, positions: np.ndarray) -> "QueryLog":
        """The same log of some of the queries."""
        return QueryLog(self.affinity, self.rows[positions], self.kind)

    def levels(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Level of every pair of a query's position and an item, shape (queries, items)."""
        levels: np.ndarray = self.values[self.affinity.block(self.rows[queries], items)]
        return levels

    def tabulated(self) -> "QueryLog":
        """Itself: levels of a log are looked up."""
        return self

    def positives(self, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Offsets (n + 1,) and items: those relevant to query i are items[offsets[i:i + 2]]."""
        rng, counts, items = np.random.default_rng(0), [0], [np.empty(0, np.int64)]
        for queries in self._blocks():
            for row in self.levels(queries, np.arange(self.n_items)):
                relevant = np.flatnonzero(row)
                if most is not None and len(relevant) > most:
                    relevant = np.sort(rng.choice(relevant, most, replace=False))
                counts.append(len(relevant))
                items.append(relevant)
        return np.cumsum(counts), np.concatenate(items)

    def density(self) -> float:
        """Share of pairs that are relevant, on an even sample of the queries."""
        levels = self.levels(even_sample(len(self)), np.arange(self.n_items))
        return np.count_nonzero(levels) / max(levels.size, 1)

    def has_contrast(self, rows: np.ndarray) -> bool:
        """Whether some items may matter more than others: always, as the log was checked."""
        return True

    def check_contrast(self) -> None:
        """Refuse a log under which no ranking is better than another."""
        levels_seen: set[int] = set()
        for queries in self._blocks():
            levels = self.levels(queries, np.arange(self.n_items))
            levels_seen |= set(np.unique(levels).tolist())
            if len(levels_seen) > 1:
                return
        if levels_seen <= {0}:
            raise InputError("judgements must make some items relevant to queries, got none")
        raise InputError(
            "judgements must make some items more relevant than others, got one level for all pairs"
        )

    def notes(self) -> dict[str, Any]:
        """What a report should say about the log."""
        return {**super().notes(), "queries": self.affinity.shape[0]}

    def _blocks(self) -> list[np.ndarray]:
        step = max(1, _BLOCK_CELLS // max(self.n_items, 1))
        queries = np.arange(len(self))
        return [queries[start : start + step] for start in range(0, len(queries), step)]


def read_query_log(judgements: Any, n_queries: int, n_items: int) -> QueryLog:
    """The log that judgements over (query_X, X) give, or an error that says why there is none."""
    if not isinstance(judgements, Affinity):
        raise InputError(
            "judgements must be an object from rankbits.affinity over (query_X, X), such as "
            "rankbits.affinity.judgements(rows, n_queries, n_database), got "
            f"{_check.describe(judgements)}"
        )
    if judgements.shape != (n_queries, n_items):
        raise InputError(
            f"judgements must be over (query_X, X), of shape ({n_queries}, {n_items}), got shape "
            f"{judgements.shape}"
        )
    log = QueryLog(judgements, np.arange(n_queries))
    log.check_contrast()
    return log


def rank_items(queries: np.ndarray, items: np.ndarray, graded: bool) -> QueryLog:
    """The log of queries that nobody judged: their own rankings of the items by distance."""
    log = QueryLog(rank_by_distance(queries, items, graded), np.arange(len(queries)), "ranks")
    log.check_contrast()
    return log
