"""Affinity without labels: how near two vectors are, cut into levels by distance thresholds."""

from typing import Any

import numpy as np

from rankbits import _check
from rankbits.affinity._base import Affinity, levels_with_zero
from rankbits.affinity._distances import read_reals, read_vectors, square_distances
from rankbits.errors import InputError

_SAMPLE = 2048
_BLOCK_CELLS = 1 << 17


class Neighbours(Affinity):
    """L2 thresholds turned into levels. Build it with `rankbits.affinity.neighbours`.

    Parameters
    ----------
    query_x : ndarray of shape (n_queries, features)
        The vector of each query, finite real numbers.
    database_x : ndarray of shape (n_items, features)
        The vector of each item, with the same features as `query_x`. It may be memory-mapped.
    thresholds : ndarray of float64, shape (n_thresholds,)
        L2 distances in ascending order. A pair has the level of the first threshold that its
        distance does not exceed, and level 0 beyond the last one.
    levels : ndarray of int64, shape (n_thresholds,)
        The level of each threshold. Levels must not rise from one threshold to the next.
    """

    def __init__(
        self,
        query_x: np.ndarray,
        database_x: np.ndarray,
        thresholds: np.ndarray,
        levels: np.ndarray,
    ) -> None:
        self.query_x, self.database_x = query_x, database_x
        self._thresholds = thresholds  # ascending: the first one not exceeded names the level
        self.levels = levels_with_zero("levels", levels)
        places = np.append(np.searchsorted(self.levels, levels), 0)  # the last one: beyond them all
        self._places = places.astype(self.index_dtype)
        self.shape = (len(query_x), len(database_x))

    def indices(self, queries: slice, items: slice) -> np.ndarray:
        return self._positions(self.query_x[queries], self.database_x[items])

    def block(self, query_rows: np.ndarray, item_rows: np.ndarray) -> np.ndarray:
        return self._positions(self.query_x[query_rows], self.database_x[item_rows])

    def _positions(self, query_x: np.ndarray, item_x: np.ndarray) -> np.ndarray:
        positions = np.empty((len(query_x), len(item_x)), self.index_dtype)
        step = max(1, _BLOCK_CELLS // max(query_x.shape))  # its doubles take some MB
        for start in range(0, len(item_x), step):
            part = slice(start, start + step)
            squares = square_distances(query_x, item_x[part], recheck=self._thresholds**2)
            distances = np.sqrt(squares, out=squares)
            spots = np.searchsorted(self._thresholds, distances, side="left")
            positions[:, part] = self._places[spots]
        return positions


def neighbours(query_x: Any, database_x: Any, distances: Any, levels: Any) -> Neighbours:
    """Levels from L2 distances: a pair within several thresholds has the level of the smallest.

    Parameters
    ----------
    query_x, database_x : array-like of shape (n, features)
        The vector of each query and of each item, finite real numbers.
    distances : array-like of float, shape (n_thresholds,)
        L2 distances, positive and without repeats, in any order. A pair has the level of the
        smallest threshold that its distance does not exceed.
    levels : array-like of int, shape (n_thresholds,)
        The level of each threshold. A smaller threshold must not have a lower level.

    >>> near = neighbours([[0.0]], [[0.5], [2.0], [9.0]], distances=(3.0, 1.0), levels=(1, 5))
    >>> near.levels[near.indices(slice(None), slice(None))].tolist()
    [[5, 1, 0]]
    """
    query_x, database_x = read_vectors("query_x", query_x), read_vectors("database_x", database_x)
    if query_x.shape[1] != database_x.shape[1]:
        raise InputError(
            f"query_x has {query_x.shape[1]} features and database_x has {database_x.shape[1]}"
        )
    cuts, grades = read_reals("distances", distances), _check.array("levels", levels)
    if cuts.ndim != 1 or grades.shape != cuts.shape or cuts.size == 0:
        raise InputError(
            "distances and levels must be two lists of equal length, got "
            f"{_check.describe(cuts)} and {_check.describe(grades)}"
        )
    levels_with_zero("levels", grades)
    order = np.argsort(cuts)
    cuts, grades = cuts[order], grades[order].astype(np.int64)
    if not (np.isfinite(cuts).all() and cuts[0] > 0 and (np.diff(cuts) > 0).all()):
        raise InputError(f"distances must be positive, finite and different, got {cuts.tolist()}")
    if (np.diff(grades) > 0).any():
        raise InputError(f"levels must not fall as items come nearer, got {grades.tolist()}")
    return Neighbours(query_x, database_x, cuts, grades)


def distance_quantiles(train_x: Any, shares: Any, random_state: int = 0) -> np.ndarray:
    """Distances below which the given shares of training pairs lie: thresholds for `neighbours`.

    All pairs of different items count when there are at most 2,048 items; otherwise all pairs of
    2,048 seeded rows.

    Parameters
    ----------
    train_x : array-like of shape (n, features)
        The training vectors, finite real numbers. At least two rows are needed.
    shares : array-like of shape (n_shares,)
        Shares of the training pairs, each above 0 and below 1.
    random_state : int, default=0
        Seed of the choice of 2,048 rows. It has no effect if there are no more rows than that.

    Returns
    -------
    ndarray of float64, shape (n_shares,)
        The L2 distance for each share, in the order of `shares`.

    >>> distance_quantiles([[0.0], [1.0], [3.0]], (0.5,)).tolist()
    [2.0]
    """
    x = read_vectors("train_x", train_x)
    if len(x) < 2:
        raise InputError("train_x must have at least two rows: one item has no distances")
    quantile_shares = read_reals("shares", shares)
    if quantile_shares.ndim != 1 or not ((quantile_shares > 0) & (quantile_shares < 1)).all():
        raise InputError(f"shares must lie between 0 and 1, got {shares}")
    rng = np.random.default_rng(random_state)
    rows = np.sort(rng.choice(len(x), min(len(x), _SAMPLE), replace=False))
    sample = np.asarray(x[rows], float)
    sample = sample - sample.mean(axis=0)  # a common offset would cost the product its digits
    squares = square_distances(sample, sample, recheck=np.empty(0))
    distances = np.sqrt(squares[np.triu_indices(len(rows), 1)])
    quantiles: np.ndarray = np.quantile(distances, quantile_shares)
    return quantiles
