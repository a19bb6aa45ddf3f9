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
        Rows of the queries whose judgements may be learned from; None takes all.
    """
    if coder.lesson == "labels" and task.relevance.labels is not None:
        hasher.fit(_rows(task.items, training), task.relevance.labels[1][training])
    elif coder.lesson == "judgements" and task.relevance.judged is not None:
        asked = np.arange(len(task.queries)) if learners is None else learners
        judged = task.relevance.of_queries(asked).judged
        assert judged is not None  # as those of all queries are there
        judged = judged[judged[:, 2] > 0]
        items = np.union1d(training, judged[:, 1])
        judged[:, 1] = np.searchsorted(items, judged[:, 1])
        hasher.fit(
            _rows(task.items, items),
            query_X=_rows(task.queries, asked),
            judgements=judgements(judged, len(asked), len(items)),
        )
    else:
        hasher.fit(_rows(task.items, training))


def _rows(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.asarray(vectors[rows], np.float32)
