"""Evaluation of float vectors: what an embedding scores before it becomes codes."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rankbits import _check
from rankbits._mapped import reads_unchanged
from rankbits.affinity import Affinity
from rankbits.evaluation._by_distance import evaluate_by_distance
from rankbits.evaluation._reference import score_all
from rankbits.evaluation._result import EMPTY, Evaluation
from rankbits.evaluation._shards import Progress
from rankbits.histogram import VectorDistances
from rankbits.metrics import NamedMetric, parse_metrics

RANKED_BY = {
    "cosine": "the cosine of vectors",
    "ip": "the inner product of vectors",
    "l2": "the Euclidean distance of vectors",
}


@reads_unchanged
def evaluate_vectors(
    queries: Any,
    database: Any,
    affinity: Affinity | None,
    metrics: Iterable[str] | str = ("AP",),
    metric: str = "cosine",
    empty: str = "skip",
    *,
    reference: Any = None,
    exclude_self: bool | np.ndarray = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Rank the database by the vectors themselves and score it, exactly under ties.

    The database goes by in blocks, and distances are computed in double precision. Equal vectors
    are always ties; other items are ties if their distances are equal to the last bit. Memory
    beyond the inputs stays below 64 MB unless one query has millions of relevant items.

    Parameters
    ----------
    queries : array-like of shape (queries, d)
        Finite real numbers, such as float32, float16 or int8.
    database : array-like of shape (items, d)
        The same of the items. It may be memory-mapped.
    affinity : Affinity or None
        From `rankbits.affinity`, over these queries and items. None if no metric reads it.
    metrics : str or iterable of str, default=("AP",)
        Names of the metrics, such as "AP" or "nDCG(linear)@10". Metrics within a Hamming radius
        are refused.
    metric : {"cosine", "ip", "l2"}, default="cosine"
        What items are ranked by: the largest cosine, which counts as 0 where a vector is zero, the
        largest inner product, or the smallest Euclidean distance.
    empty : {"skip", "zero", "error"}, default="skip"
        What to do with a query that has nothing relevant, as in `evaluate`.
    reference : array-like of int, shape (queries, at least k), or None, default=None
        Ids of each query's first items in a reference ranking, for `overlap@k`, as in `evaluate`.
    exclude_self : bool or ndarray of int, shape (queries,), default=False
        As in `rankbits.count_ties`.
    n_threads : int or None, default=None
        Number of threads that count; None takes all that this process may use. The matrix product
        is NumPy's and follows its own settings.
    progress : callable or None, default=None
        Called as progress(done, total) with numbers of query-item pairs.

    >>> from rankbits.affinity import classes
    >>> x = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [0.0, 2.0]])
    >>> evaluate_vectors(x[:1], x, classes([7], [7, 7, 8, 8]), ["AP", "P@3"]).per_query
    {'AP': array([0.79166667]), 'P@3': array([0.5])}
    """
    _check.choice("empty", empty, EMPTY)
    requests = parse_metrics(metrics)
    source = VectorDistances(queries, database, metric)

    def score(affinity: Affinity, requests: Sequence[NamedMetric]) -> Evaluation:
        return evaluate_by_distance(
            source,
            affinity,
            requests,
            empty,
            ranked_by=RANKED_BY[metric],
            exclude_self=exclude_self,
            n_threads=n_threads,
            progress=progress,
        )

    return score_all(requests, affinity, reference, source.shape, score)
