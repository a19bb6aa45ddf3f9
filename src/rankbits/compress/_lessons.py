"""What a method learns from: items alone, their labels, or judged queries.

Whoever learns from judgements must not be measured on the queries they are about. So the queries
are divided into parts, and each part is asked of a model that learned from the other parts. The
model that is written to the folder learns from all of them, and was measured by these.
"""

from typing import Any

import numpy as np

from rankbits.affinity import judgements
from rankbits.compress._candidates import Coder
from rankbits.compress._task import Task

N_PARTS = 3


def learning_parts(n_queries: int, seed: int) -> list[np.ndarray]:
    """The parts of the queries, each with rows ascending."""
    order = np.random.default_rng((seed, 7)).permutation(n_queries)
    return [np.sort(part) for part in np.array_split(order, N_PARTS)]


def others(part: np.ndarray, n_queries: int) -> np.ndarray:
    """The rows of all queries that are not in a part."""
    return np.setdiff1d(np.arange(n_queries), part)


def teach(
    hasher: Any, coder: Coder, task: Task, training: np.ndarray, learners: np.ndarray | None = None
) -> None:
    """Fit a method.

    Parameters
    ----------
    hasher : BaseHasher
        The method, not yet fitted.
    coder : Coder
        What it learns from.
    task : Task
        Items, queries, and what is relevant.
    training : ndarray of int64
        Rows of the items to learn from. Items that the learners find relevant are added.
    learners : ndarray of int64 or None, default=None
        Rows of the queries whose judgements may be learned from, ascending; None takes all.
    """
    relevance = task.relevance
    if coder.lesson == "labels" and relevance.labels is not None:
        hasher.fit(_rows(task.items, training), relevance.labels[1][training])
    elif coder.lesson == "judgements" and relevance.judged is not None:
        asked = np.arange(len(task.queries)) if learners is None else learners
        items, judged = _judged_items(relevance.judged, asked, training)
        hasher.fit(
            _rows(task.items, items),
            query_X=_rows(task.queries, asked),
            judgements=judgements(judged, len(asked), len(items)),
        )
    else:
        hasher.fit(_rows(task.items, training))


def _judged_items(
    judged: np.ndarray, learners: np.ndarray, training: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the items to learn from, and judgements in terms of learners and these items."""
    judged = judged[np.isin(judged[:, 0], learners) & (judged[:, 2] > 0)]
    items = np.union1d(training, judged[:, 1])
    places = np.searchsorted(learners, judged[:, 0]), np.searchsorted(items, judged[:, 1])
    return items, np.column_stack([*places, judged[:, 2]])


def _rows(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.asarray(vectors[rows], np.float32)
