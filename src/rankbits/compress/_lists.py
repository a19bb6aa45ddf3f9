"""Lists of results and their scores: by codes alone, and re-ranked by the original vectors.

All re-ranking pools of a code come from one list in the order of the code: a pool of 50 is its
first 50 items. Lists are cut behind the tie of the deepest rank that a metric reads, so a value is
the exact expectation over the orders of tied items, as everywhere in rankbits.
"""

from collections.abc import Sequence

import numpy as np

from rankbits import index
from rankbits.codes import Queries
from rankbits.compress._task import Task
from rankbits.compress._truth import Truth
from rankbits.evaluation import evaluate_rankings
from rankbits.index.results import of_table

NO_ITEM = -1
NO_POOL = "none"  # the key of a list that is not re-ranked


def without_own(
    distances: np.ndarray, ids: np.ndarray, own: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lists one shorter, without the item that is the query itself."""
    if not (own >= 0).any():
        return distances, ids
    is_own = (ids == own[:, None]) & (own[:, None] >= 0)
    order = np.argsort(is_own, axis=1, kind="stable")[:, :-1]
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(ids, order, axis=1)


def exact_distances(queries: np.ndarray, task: Task, ids: np.ndarray) -> np.ndarray:
    """Distances of the listed items by the original vectors, infinite where there is none."""
    distances = np.full(ids.shape, np.inf)
    vectors = index.vectors(task.items, similarity=task.similarity)
    listed = of_table(distances, ids)
    distances[ids != NO_ITEM] = vectors.listed(Queries(vectors=queries), listed)
    return distances


def rerank(exact: np.ndarray, ids: np.ndarray, pool: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `pool` items of each list, in order of (exact distance, id)."""
    exact, ids = exact[:, :pool], ids[:, :pool]
    order = np.lexsort((ids, exact), axis=1)
    return np.take_along_axis(exact, order, axis=1), np.take_along_axis(ids, order, axis=1)


def ends_inside(distances: np.ndarray, depth: int, n_items: int) -> bool:
    """Whether the tie at the rank `depth` ends inside every list, or lists have every item."""
    if distances.shape[1] >= n_items:
        return True
    if distances.shape[1] <= depth:
        return False
    return bool((distances[:, depth - 1] < distances[:, -1]).all())


def score_lists(truth: Truth, distances: np.ndarray, ids: np.ndarray) -> dict[str, np.ndarray]:
    """The value of each query by metric; lists are in order of distance, nearest first."""
    last = distances[:, min(truth.depth, distances.shape[1]) - 1]
    width = int((distances <= last[:, None]).sum(axis=1).max())
    scores = np.where(np.isfinite(distances), distances, 0.0)[:, :width]
    ids = np.where(np.isfinite(distances), ids, NO_ITEM)[:, :width]
    return evaluate_rankings(
        ids,
        truth.affinity,
        truth.metrics,
        scores=_rising(scores, ids),
        reference=truth.nearest,
        exclude_self=truth.own,
    ).per_query


def score_pools(
    truth: Truth,
    task: Task,
    distances: np.ndarray,
    ids: np.ndarray,
    pools: Sequence[int],
    heads: dict[str, np.ndarray] | None = None,
) -> dict[str, dict[str, list[float]]]:
    """Values of each query by pool and metric: the list as it is, and every re-ranked pool of it.

    `heads` are the values of the list as it is, if they are known already.
    """
    values = {NO_POOL: heads or score_lists(truth, distances, ids)}
    exact = exact_distances(task.queries, task, ids)
    for pool in pools:
        values[str(pool)] = score_lists(truth, *rerank(exact, ids, pool))
    return {
        pool: {name: column.tolist() for name, column in row.items()}
        for pool, row in values.items()
    }


def pools_of(pools: Sequence[int], depth: int, n_items: int) -> list[int]:
    """The pools that make sense: deeper than what metrics read, and not beyond all items."""
    return [pool for pool in sorted(set(pools)) if depth < pool < n_items]


def _rising(scores: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Places without an item get the score before them, so that scores never fall."""
    return np.maximum.accumulate(np.where(ids == NO_ITEM, -np.inf, scores), axis=1)
