"""Clusters in 32 dimensions, and a task and its truth for tests of single stages."""

import numpy as np

from rankbits.compress._task import prepare_task
from rankbits.compress._truth import check_metrics, rank_by_vectors, truth_of

WIDTH = 32
SETTINGS = {
    "n_bytes": (2, 4),
    "methods": ["sign", "itq"],
    "pools": (20, 50),
    "onnx": False,  # its export takes longer than all the rest
    "n_threads": 1,
}


def clusters(n_rows, seed):
    """Rows around forty centers, and which center each is of."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(99).standard_normal((40, WIDTH))
    labels = rng.integers(40, size=n_rows)
    return (centers[labels] + 0.6 * rng.standard_normal((n_rows, WIDTH))).astype(np.float32), labels


def task_of(vectors, **labels):
    task = prepare_task(
        vectors["items"],
        vectors["queries"],
        None,
        labels.get("query_labels"),
        labels.get("item_labels"),
        "cosine",
        None,
        0,
        None,
    )
    requests = check_metrics(None, task.relevance.kind)
    ranking = rank_by_vectors(
        task.items, task.queries, task.own, task.relevance, requests, "cosine", 1
    )
    return task, truth_of(ranking, task.own, task.relevance, requests, len(task.items))
