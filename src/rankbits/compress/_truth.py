"""What a ranking is judged by: judgements, labels, or the float ranking itself.

Without judgements and labels the first items of a query's float ranking are the truth: `overlap@10`
counts how many of its first ten are found again, and `nDCG@10` gives them level 3, those down to
rank 50 level 2 and those down to rank 200 level 1, so that a near miss costs less than a far one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.affinity import Affinity, Judgements, classes, judgements, tags
from rankbits.errors import InputError
from rankbits.evaluation import evaluate_vectors, nearest_vectors
from rankbits.metrics import NamedMetric, parse_metrics

JUDGED_METRICS = ("nDCG@10", "overlap@10")
FLOAT_METRICS = ("overlap@10", "nDCG@10")
LEVEL_OF_RANK = ((200, 1), (50, 2), (10, 3))  # the first items of a float ranking, and their level


@dataclass(frozen=True, eq=False)
class Relevance:
    """What says which items are relevant to which queries: at most one of the two.

    Attributes
    ----------
    judged : ndarray of int64, shape (pairs, 3), or None
        Rows (query, item, level).
    labels : pair of arrays, or None
        Classes or multi-hot tags of the queries and of the items.
    """

    judged: np.ndarray | None = None
    labels: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def kind(self) -> str:
        """Its name in results."""
        if self.judged is not None:
            return "judgements"
        return "labels" if self.labels is not None else "float ranking"

    def of_queries(self, rows: np.ndarray) -> "Relevance":
        """The same for some of the queries, numbered anew."""
        if self.judged is not None:
            place = np.full(max(int(self.judged[:, 0].max(initial=-1)), int(rows.max())) + 1, -1)
            place[rows] = np.arange(len(rows))
            judged = self.judged.copy()
            judged[:, 0] = place[judged[:, 0]]
            return Relevance(judged=judged[judged[:, 0] >= 0])
        if self.labels is not None:
            return Relevance(labels=(self.labels[0][rows], self.labels[1]))
        return self

    def affinity(self, n_queries: int, n_items: int) -> Affinity | None:
        """The affinity of all pairs; None if only the float ranking can say."""
        if self.judged is not None:
            return judgements(self.judged, n_queries, n_items)
        if self.labels is None:
            return None
        make = classes if self.labels[0].ndim == 1 else tags
        return make(*self.labels)


@dataclass(frozen=True, eq=False)
class Truth:
    """What every candidate is measured by.

    Attributes
    ----------
    kind : str
        "judgements", "labels" or "float ranking".
    requests : tuple of NamedMetric
        The metrics; the first one decides.
    affinity : Affinity
        Levels of all pairs of queries and items.
    nearest : ndarray of int64, shape (queries, k)
        The first items of each query's float ranking.
    own : ndarray of int64, shape (queries,)
        The item that is the query itself and does not count, -1 for none.
    reference : dict from str to ndarray of float64, shape (queries,)
        The values of the float ranking by metric.
    """

    kind: str
    requests: tuple[NamedMetric, ...]
    affinity: Affinity
    nearest: np.ndarray
    own: np.ndarray
    reference: dict[str, np.ndarray]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics, that which decides first."""
        return tuple(request.name for request in self.requests)

    @property
    def depth(self) -> int:
        """The deepest rank that a metric reads."""
        return max(request.k or 1 for request in self.requests)

    def of_queries(self, rows: np.ndarray, relevance: Relevance) -> "Truth":
        """The same for some of the queries, whose relevance is given."""
        nearest = self.nearest[rows]
        return replace(
            self,
            affinity=_affinity(relevance, nearest, self.affinity.shape[1]),
            nearest=nearest,
            own=self.own[rows],
            reference={name: values[rows] for name, values in self.reference.items()},
        )


def check_relevance(
    judged: Any, query_labels: Any, item_labels: Any, n_queries: int | None, n_items: int
) -> Relevance:
    """Judgements or labels that fit the queries and the items; queries may be items themselves."""
    has_labels = query_labels is not None or item_labels is not None
    if judged is not None and has_labels:
        raise InputError("give judgements or labels, not both")
    if judged is not None:
        if n_queries is None:
            raise InputError("judgements must come with queries, whose rows they name")
        try:
            return Relevance(judged=judgements(judged, n_queries, n_items).rows)
        except InputError as error:
            raise InputError(str(error).replace("rows must", "judgements must", 1)) from None
    if not has_labels:
        return Relevance()
    items = _labels("item_labels", item_labels, n_items)
    if n_queries is None:
        if query_labels is not None:
            raise InputError("query_labels must come with queries")
        return Relevance(labels=(items, items))
    return Relevance(labels=(_labels("query_labels", query_labels, n_queries), items))


def check_metrics(metrics: Any, kind: str) -> tuple[NamedMetric, ...]:
    """The metrics, which must have a rank as their cutoff; defaults depend on the truth."""
    defaults = FLOAT_METRICS if kind == "float ranking" else JUDGED_METRICS
    requests = tuple(parse_metrics(metrics or defaults))
    for request in requests:
        if request.k is None or request.radius is not None or request.bound is not None:
            raise InputError(
                f"metrics must be cut by a rank, as in nDCG@10, got {request.name!r}: a re-ranked "
                "pool is the head of a ranking"
            )
    return requests


def rank_by_vectors(
    items: np.ndarray,
    queries: np.ndarray,
    own: np.ndarray,
    relevance: Relevance,
    requests: tuple[NamedMetric, ...],
    similarity: str,
    n_threads: int | None,
) -> dict[str, Any]:
    """Rank all items by the vectors themselves, once, and score that ranking; ready for JSON.

    Parameters
    ----------
    items, queries : ndarray of shape (N, d) and (n, d)
        The vectors.
    own : ndarray of int64, shape (n,)
        The item of each query that does not count, -1 for none.
    relevance : Relevance
        Judgements or labels, or neither.
    requests : tuple of NamedMetric
        The metrics.
    similarity : {"cosine", "ip", "l2"}
        What the vectors are ranked by.
    n_threads : int or None
        Number of threads; None takes all.
    """
    depth = max(request.k or 1 for request in requests)
    if relevance.kind == "float ranking":
        depth = max(depth, LEVEL_OF_RANK[0][0])
    nearest = nearest_vectors(
        queries, items, min(depth, len(items)), similarity, exclude_self=own, n_threads=n_threads
    )
    scores = evaluate_vectors(
        queries,
        items,
        _affinity(relevance, nearest, len(items)),
        [request.name for request in requests],
        similarity,
        reference=nearest,
        exclude_self=own,
        n_threads=n_threads,
    )
    values = {name: column.tolist() for name, column in scores.per_query.items()}
    return {"nearest": nearest.tolist(), "values": values}


def truth_of(
    ranking: Mapping[str, Any],
    own: np.ndarray,
    relevance: Relevance,
    requests: tuple[NamedMetric, ...],
    n_items: int,
) -> Truth:
    """The truth, given what `rank_by_vectors` returned."""
    nearest = np.array(ranking["nearest"], np.int64)
    values = {name: np.array(column, float) for name, column in ranking["values"].items()}
    first = requests[0].name
    if not values[first].mean() > 0:
        raise InputError(
            f"the float ranking scores 0 in {first}, so nothing can be kept: check that "
            "judgements or labels are in the order of these vectors"
        )
    affinity = _affinity(relevance, nearest, n_items)
    return Truth(relevance.kind, requests, affinity, nearest, own, values)


def _affinity(relevance: Relevance, nearest: np.ndarray, n_items: int) -> Affinity:
    return relevance.affinity(len(nearest), n_items) or float_levels(nearest, n_items)


def float_levels(nearest: np.ndarray, n_items: int) -> Judgements:
    """Levels of the first items of each float ranking, by `LEVEL_OF_RANK`."""
    levels = np.zeros(nearest.shape[1], np.int64)
    for rank, level in LEVEL_OF_RANK:
        levels[:rank] = level
    queries, places = np.nonzero((nearest >= 0) & (levels > 0))
    rows = np.column_stack([queries, nearest[queries, places], levels[places]])
    return judgements(rows, len(nearest), n_items)


def answerable_queries(relevance: Relevance, n_queries: int, own: np.ndarray) -> np.ndarray:
    """Rows of the queries to which something other than themselves is relevant."""
    if relevance.judged is not None:
        is_relevant = relevance.judged[:, 2] > 0
        return np.unique(relevance.judged[is_relevant, 0])
    if relevance.labels is not None and relevance.labels[0].ndim == 1:
        names, counts = np.unique(relevance.labels[1], return_counts=True)
        place = np.searchsorted(names, relevance.labels[0])
        place = np.minimum(place, len(names) - 1)
        n_same = np.where(names[place] == relevance.labels[0], counts[place], 0)
        return np.flatnonzero(n_same > (own >= 0))
    return np.arange(n_queries)


def _labels(name: str, values: Any, n_rows: int) -> np.ndarray:
    if values is None:
        raise InputError(f"{name} must be given: labels are needed of queries and of items")
    labels = _check.array(name, values)
    if labels.ndim not in (1, 2) or len(labels) != n_rows:
        raise InputError(
            f"{name} must have one class or row of tags for each of {n_rows} vectors, got "
            f"{_check.describe(labels)}"
        )
    return labels
