"""Evaluation: count ties once, read every metric from the counts, average over queries.

Averaging is where queries with nothing relevant matter, so the choice is explicit: `skip` leaves
them out and counts them, `zero` scores them 0, `error` refuses them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rankbits import _check
from rankbits._mapped import reads_unchanged
from rankbits.affinity import Affinity
from rankbits.codes import BinaryCodes, require_same_bits
from rankbits.errors import InputError
from rankbits.evaluation._by_distance import evaluate_by_distance
from rankbits.evaluation._reference import Score, refuse_reference, score_all
from rankbits.evaluation._result import EMPTY, Evaluation, evaluation_of_histogram
from rankbits.evaluation._shards import Progress
from rankbits.histogram import CodeDistances, TieHistogram, count_ties
from rankbits.metrics import NamedMetric, parse_metrics


@reads_unchanged
def evaluate(
    queries: BinaryCodes | None,
    database: BinaryCodes,
    affinity: Affinity | None,
    metrics: Iterable[str] | str = ("AP",),
    empty: str = "skip",
    *,
    query_weights: Any = None,
    reference: Any = None,
    exclude_self: bool | np.ndarray = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Rank the database by Hamming distance for each query and score it, exactly under ties.

    With `query_weights` the items are ranked by the inner product of a query's weights and their
    codes taken as -1 and +1 instead, largest first; equal scores are ties.

    Parameters
    ----------
    queries, database : BinaryCodes of one length
        `queries` may be None if `query_weights` are given; if it is not, it must fit them.
    affinity : from `rankbits.affinity`, over these queries and items; None if no metric reads it
    metrics : names such as "AP", "AP(min)@1000", "nDCG@100", "P@r2"
    empty : "skip", "zero" or "error"
        What a query with nothing relevant does to a mean: left out and counted, 0, or an error.
    query_weights : array of shape (queries, b) or (queries, 16 * ceil(b / 4)), or None
        A real number for each bit, or 16 for every four, as `hasher.project_queries(X)` gives them.
        Scores are those of `HammingIndex.search_real`. Metrics within a Hamming radius are refused.
    reference : array of int, shape (queries, at least k), or None
        Ids of each query's first items in a reference ranking, best first, for `overlap@k`; -1
        where there is none. `rankbits.evaluation.nearest_vectors` gives those of float vectors.
    exclude_self, n_threads, progress : as in `rankbits.count_ties`

    >>> codes = BinaryCodes.from_bits([[0, 0], [0, 1], [1, 1]])
    >>> from rankbits.affinity import classes
    >>> evaluate(codes[:1], codes, classes([7], [7, 8, 7]), ["AP", "P@1"]).mean
    {'AP': 0.8333333333333333, 'P@1': 1.0}
    >>> weights = np.array([[-0.5, 2.0]])
    >>> scored = evaluate(None, codes, classes([7], [7, 8, 7]), "AP", query_weights=weights)
    >>> round(scored.mean["AP"], 4)
    0.5833
    """
    _check.choice("empty", empty, EMPTY)
    requests = parse_metrics(metrics, queries.n_bits if isinstance(queries, BinaryCodes) else None)
    options: dict[str, Any] = {
        "exclude_self": exclude_self,
        "n_threads": n_threads,
        "progress": progress,
    }
    if query_weights is None:
        shape, score = _score_codes(_required(queries), database, empty, **options)
    else:
        shape, score = _score_weights(queries, database, query_weights, empty, **options)
    return score_all(requests, affinity, reference, shape, score)


def _score_codes(
    queries: BinaryCodes,
    database: BinaryCodes,
    empty: str,
    *,
    exclude_self: bool | np.ndarray,
    n_threads: int | None,
    progress: Progress | None,
) -> tuple[tuple[int, int], Score]:
    """Numbers of queries and items, and how rankings by Hamming distance are scored."""
    require_same_bits(queries, database)

    def score(affinity: Affinity, requests: Sequence[NamedMetric]) -> Evaluation:
        hist = count_ties(
            queries, database, affinity, exclude_self, n_threads=n_threads, progress=progress
        )
        values = _values_of_codes(queries, database, hist, requests, exclude_self, n_threads)
        return evaluation_of_histogram(values, requests, hist, empty)

    return (len(queries), len(database)), score


def _score_weights(
    queries: BinaryCodes | None, database: BinaryCodes, weights: Any, empty: str, **options: Any
) -> tuple[tuple[int, int], Score]:
    """The same of rankings by real weights; codes of the queries, if there are any, must fit."""
    source = CodeDistances(weights, database)
    if queries is not None:
        require_same_bits(queries, database)
        if len(queries) != source.shape[0]:
            raise InputError(
                f"query_weights must have a row for each query, got {source.shape[0]} rows for "
                f"{len(queries)} queries"
            )

    def score(affinity: Affinity, requests: Sequence[NamedMetric]) -> Evaluation:
        return evaluate_by_distance(
            source,
            affinity,
            requests,
            empty,
            ranked_by="the inner product of real-valued queries and codes",
            n_bits=database.n_bits,
            **options,
        )

    return source.shape, score


def evaluate_histogram(
    hist: TieHistogram, metrics: Iterable[str] | str = ("AP",), empty: str = "skip"
) -> Evaluation:
    """Score a tie histogram that was merged from shards, or saved and loaded; see `evaluate`.

    LGAP needs the codes themselves and overlap a reference ranking: both are refused.

    Parameters
    ----------
    hist : TieHistogram
        Counts of database items by Hamming distance and affinity level, of at least one query.
    metrics : str or iterable of str, default=("AP",)
        Names of the metrics, such as "AP", "AP(min)@1000", "nDCG@100" or "P@r2".
    empty : {"skip", "zero", "error"}, default="skip"
        What to do with a query that has nothing relevant: leave it out of the mean and count it,
        score it 0, or raise an error.
    """
    _check.choice("empty", empty, EMPTY)
    if not isinstance(hist, TieHistogram):
        raise InputError(f"hist must be a TieHistogram, got {_check.describe(hist)}")
    if hist.n_queries == 0:
        raise InputError("hist must have at least one query, it has none")
    requests = parse_metrics(metrics, hist.n_bits)
    refuse_reference(requests)
    for request in requests:
        if request.needs_codes:
            raise InputError(
                f"metric {request.name!r} needs the codes themselves, a histogram does not have "
                "them; call evaluate() with codes"
            )
    values = {request.name: request.values(hist) for request in requests}
    return evaluation_of_histogram(values, requests, hist, empty)


def _values_of_codes(
    queries: BinaryCodes,
    database: BinaryCodes,
    hist: TieHistogram,
    requests: Sequence[NamedMetric],
    exclude_self: bool | np.ndarray,
    n_threads: int | None,
) -> dict[str, np.ndarray]:
    """Values of each metric; what the histogram does not say is counted from the codes, once."""
    counters = {request.metric: request.metric.count_codes for request in requests}
    code_counts = {
        metric: count_codes(queries, database, exclude_self, n_threads=n_threads)
        for metric, count_codes in counters.items()
        if count_codes is not None
    }
    return {
        request.name: request.values(hist, code_counts.get(request.metric)) for request in requests
    }


def _required(queries: BinaryCodes | None) -> BinaryCodes:
    if queries is None:
        raise InputError("queries must be BinaryCodes, got None; only query_weights= replaces them")
    return queries
