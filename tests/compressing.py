"""A task and its truth, for tests of single stages."""

from rankbits.compress._task import prepare_task
from rankbits.compress._truth import check_metrics, rank_by_vectors, truth_of


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
