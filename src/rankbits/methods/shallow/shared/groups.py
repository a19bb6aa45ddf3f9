"""Groups of similar rows, by k-means: centers that stand for many rows."""

from typing import Any

import numpy as np

_ROWS_A_GROUP = 256  # of more rows, so many a group are drawn to learn from


def find_centers(
    rows: np.ndarray, n_groups: int, n_rounds: int, rng: np.random.RandomState
) -> np.ndarray:
    """Centers (k, d) of groups of rows, after a few rounds of k-means from k-means++.

    Where there are no more distinct rows than groups, these are the centers. One thread does it,
    since the sums of several would depend on their number.
    """
    from sklearn.cluster import KMeans  # slow to import, and only fitting needs it
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    sample = draw_rows(rows, n_groups * _ROWS_A_GROUP, rng)
    distinct: np.ndarray = np.unique(sample, axis=0)
    if len(distinct) <= n_groups:
        return distinct
    groups = KMeans(n_groups, n_init=1, max_iter=n_rounds, random_state=rng)
    with threadpool_limits(limits=1):
        centers: np.ndarray = groups.fit(sample).cluster_centers_
    return centers


def draw_rows(rows: np.ndarray, n_most: int, rng: Any) -> np.ndarray:
    """All rows, or so many of them drawn without repeats, in their order."""
    if len(rows) <= n_most:
        return rows
    drawn: np.ndarray = rows[np.sort(rng.choice(len(rows), n_most, replace=False))]
    return drawn


def count_members(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Number of rows that are nearest to each center, shape (k,)."""
    from sklearn.metrics import pairwise_distances_argmin

    nearest = pairwise_distances_argmin(rows, centers)
    counts: np.ndarray = np.bincount(nearest, minlength=len(centers))
    return counts
