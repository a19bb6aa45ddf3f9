"""Affinity without labels: the place of an item in the query's own ranking by its vector.

A threshold on distances is the same for all queries, so a query in a crowd has thousands of near
items and a lonely one has none. A rank is a query's own: every query has as many near items.

Only the distance of the last item of each rank is kept, Q x R numbers; the level of a pair is
computed from the vectors when it is asked for.
"""

from typing import Any

import numpy as np

from rankbits import _check
from rankbits.affinity._base import Affinity, levels_with_zero
from rankbits.affinity._distances import ROUNDING, read_vectors
from rankbits.errors import InputError

METRICS = ("cosine", "ip", "l2")
_QUERIES = 256  # of a block in which ranks are found
_BLOCK_CELLS = 1 << 20
_ORIGIN_ROWS = 1024


class NearestRanks(Affinity):
    """Levels by rank in the query's own ranking. Build it with `rankbits.affinity.nearest_ranks`.

    Parameters
    ----------
    query_x : ndarray of shape (n_queries, features)
        The vector of each query, finite real numbers.
    database_x : ndarray of shape (n_items, features)
        The vector of each item, with the same features as `query_x`. It may be memory-mapped.
    ranks : ndarray of int64, shape (n_ranks,)
        Numbers of nearest items, ascending.
    levels : ndarray of int64, shape (n_ranks,)
        The level of the items up to each rank. Levels must not rise from one rank to the next.
    metric : {"cosine", "ip", "l2"}
        What nearest means.
    exclude_self : bool
        Whether query i is item i, which then has level 0 and no place in the ranking.
    """

    def __init__(
        self,
        query_x: np.ndarray,
        database_x: np.ndarray,
        ranks: np.ndarray,
        levels: np.ndarray,
        metric: str,
        exclude_self: bool,
    ) -> None:
        self.query_x, self.database_x = query_x, database_x
        self.metric, self.exclude_self = metric, exclude_self
        self.shape = (len(query_x), len(database_x))
        self.levels = levels_with_zero("levels", levels)
        places = np.append(np.searchsorted(self.levels, levels), 0)  # the last one: beyond them all
        self._places = places.astype(self.index_dtype)
        self._origin = np.asarray(database_x[:_ORIGIN_ROWS], float).mean(axis=0)
        self._limits = np.empty((len(query_x), len(ranks)))  # distances of the last item of a rank
        for start in range(0, len(query_x), _QUERIES):
            part = slice(start, min(start + _QUERIES, len(query_x)))
            self._limits[part] = self._find_limits(part, ranks)

    def indices(self, queries: slice, items: slice) -> np.ndarray:
        return self._positions(_numbers(queries, self.shape[0]), items)

    def block(self, query_rows: np.ndarray, item_rows: np.ndarray) -> np.ndarray:
        return self._positions(query_rows, item_rows)

    def _positions(self, query_rows: np.ndarray, items: slice | np.ndarray) -> np.ndarray:
        item_rows = _numbers(items, self.shape[1]) if isinstance(items, slice) else items
        positions = np.empty((len(query_rows), len(item_rows)), self.index_dtype)
        limits = self._limits[query_rows]
        for part in _parts(len(item_rows), len(query_rows)):
            distances = self._distances(query_rows, item_rows[part])
            spots = np.zeros(distances.shape, np.uint16)
            for limit in limits.T:
                spots += distances > limit[:, None]
            positions[:, part] = self._places[spots]
            if self.exclude_self:
                positions[:, part][query_rows[:, None] == item_rows[part]] = 0
        return positions

    def _find_limits(self, queries: slice, ranks: np.ndarray) -> np.ndarray:
        """The distance of the last item of each rank, and a rounding more, so that ties count."""
        query_rows = _numbers(queries, self.shape[0])
        n_others = self.shape[1] - self.exclude_self
        reached = ranks[ranks <= n_others]  # beyond them, every item is within the rank
        limits = np.full((len(query_rows), len(ranks)), np.inf)
        if len(reached) == 0:
            return limits
        n_nearest = int(reached[-1])
        nearest, largest = np.empty((len(query_rows), 0)), 0.0
        for part in _parts(self.shape[1], len(query_rows)):
            item_rows = _numbers(part, self.shape[1])
            distances = self._distances(query_rows, item_rows)
            largest = max(largest, float(np.abs(distances).max()))
            if self.exclude_self:
                distances[query_rows[:, None] == item_rows] = np.inf
            nearest = np.concatenate([nearest, distances], axis=1)
            if nearest.shape[1] > n_nearest:
                nearest = np.partition(nearest, n_nearest - 1, axis=1)[:, :n_nearest]
        nearest.sort(axis=1)
        limits[:, : len(reached)] = nearest[:, reached - 1] + 2 * ROUNDING * largest
        return limits

    def _distances(self, query_rows: np.ndarray, item_rows: np.ndarray) -> np.ndarray:
        """What ranks the items of each query, smallest first; comparable within a query only."""
        queries = self._prepare(self.query_x[query_rows])
        items = self._prepare(self.database_x[item_rows])
        distances: np.ndarray = -(queries @ items.T)
        if self.metric == "l2":  # |x|² / 2 - q'x, which is the square less what is the query's
            distances += np.einsum("ij,ij->i", items, items)[None] / 2
        return distances

    def _prepare(self, rows: np.ndarray) -> np.ndarray:
        prepared = np.asarray(rows, float)
        if self.metric == "l2":  # a common offset would cost the product its digits
            prepared = prepared - self._origin
        elif self.metric == "cosine":
            lengths = np.sqrt(np.einsum("ij,ij->i", prepared, prepared))[:, None]
            prepared = prepared / np.where(lengths > 0, lengths, 1)
        return prepared


def nearest_ranks(
    query_x: Any,
    database_x: Any,
    ranks: Any = (10, 50, 200, 1000),
    levels: Any = (10, 5, 2, 1),
    metric: str = "cosine",
    *,
    exclude_self: bool = False,
) -> NearestRanks:
    """Levels from each query's own ranking of the items by their vectors: a teacher for codes.

    An item as near as the last one of a rank is within that rank, so items at equal distance have
    equal levels, and a rank may hold more items than its number says. Ranks are those among all
    items of `database_x`, so the items of one shard have other ones. Vectors are compared in
    blocks; memory beyond them grows with the number of queries only.

    Parameters
    ----------
    query_x, database_x : array-like of shape (n, features)
        The vector of each query and of each item, finite real numbers.
    ranks : array-like of int, shape (n_ranks,), default=(10, 50, 200, 1000)
        Numbers of nearest items, different from each other, in any order. A pair has the level of
        the smallest rank that its item is within, and level 0 beyond the largest.
    levels : array-like of int, shape (n_ranks,), default=(10, 5, 2, 1)
        The level of each rank. A smaller rank must not have a lower level.
    metric : {"cosine", "ip", "l2"}, default="cosine"
        What nearest means, as in `rankbits.evaluate_vectors`: the largest cosine, the largest
        inner product, or the smallest Euclidean distance.
    exclude_self : bool, default=False
        Whether queries are the items, in the same order. A row then has level 0 for itself.

    >>> near = nearest_ranks([[0.0]], [[3.0], [0.5], [9.0]], (1, 2), (5, 1), metric="l2")
    >>> near.levels[near.indices(slice(None), slice(None))].tolist()
    [[1, 5, 0]]
    """
    query_x, database_x = read_vectors("query_x", query_x), read_vectors("database_x", database_x)
    if query_x.shape[1] != database_x.shape[1]:
        raise InputError(
            f"query_x has {query_x.shape[1]} features and database_x has {database_x.shape[1]}"
        )
    _check.choice("metric", metric, METRICS)
    if _check.flag("exclude_self", exclude_self) and len(query_x) != len(database_x):
        raise InputError(
            f"query_x and database_x must be the same rows where exclude_self is True, got "
            f"{len(query_x)} and {len(database_x)} rows"
        )
    numbers, grades = _read_ranks(ranks, levels)
    return NearestRanks(query_x, database_x, numbers, grades, metric, bool(exclude_self))


def _read_ranks(ranks: Any, levels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Ranks in ascending order, and the level of each."""
    numbers, grades = _check.array("ranks", ranks), _check.array("levels", levels)
    if numbers.ndim != 1 or grades.shape != numbers.shape or numbers.size == 0:
        raise InputError(
            "ranks and levels must be two lists of equal length, got "
            f"{_check.describe(numbers)} and {_check.describe(grades)}"
        )
    if (
        numbers.dtype.kind not in "iu"
        or numbers.min() < 1
        or len(set(numbers.tolist())) < numbers.size
    ):
        raise InputError(f"ranks must be positive integers, all different, got {numbers.tolist()}")
    levels_with_zero("levels", grades)
    order = np.argsort(numbers)
    numbers, grades = numbers[order].astype(np.int64), grades[order].astype(np.int64)
    if (np.diff(grades) > 0).any():
        raise InputError(f"levels must not fall as items come nearer, got {grades.tolist()}")
    return numbers, grades


def _numbers(rows: slice, n: int) -> np.ndarray:
    return np.arange(*rows.indices(n))


def _parts(n_items: int, n_queries: int) -> list[slice]:
    """Items in blocks whose distances to so many queries take some MB."""
    step = max(1, _BLOCK_CELLS // max(n_queries, 1))
    return [slice(start, min(start + step, n_items)) for start in range(0, n_items, step)]
