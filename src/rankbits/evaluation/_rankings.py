"""Evaluation of result lists: what any engine returned, best first, perhaps with scores."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankbits import _check
from rankbits._mapped import reads_unchanged
from rankbits.affinity import Affinity
from rankbits.errors import InputError
from rankbits.evaluation._by_distance import depth_of, refuse_radius
from rankbits.evaluation._reference import NO_ITEM, ranked_ids, score_all
from rankbits.evaluation._result import EMPTY, Evaluation, apply_policy
from rankbits.histogram import TieHistogram, count_relevant, own_items, require_shape
from rankbits.metrics import NamedMetric, parse_metrics

_RANKED_BY = "given lists of results"
_CELLS = 1 << 19  # counts of the rankings that are scored together


@reads_unchanged
def evaluate_rankings(
    ids: Any,
    affinity: Affinity | None,
    metrics: Iterable[str] | str = ("nDCG@10",),
    scores: Any = None,
    empty: str = "skip",
    *,
    reference: Any = None,
    exclude_self: bool | np.ndarray = False,
    n_items: int | None = None,
) -> Evaluation:
    """Score lists of results, exactly under ties.

    An item that a list does not have counts as not found, whatever the cutoff. A metric without a
    cutoff needs the whole ranking, so it is refused unless every list has every item.

    Parameters
    ----------
    ids : array-like of int, shape (queries, k)
        Items of each query, best first, numbered from 0 as in `affinity`; -1 where there is none.
    affinity : Affinity or None
        From `rankbits.affinity`, over these queries and all items of the database. None if no
        metric reads it.
    metrics : str or iterable of str, default=("nDCG@10",)
        Names of the metrics, such as "AP(total)@1000", "nDCG(linear)@10", "RR@10", "overlap@10".
    scores : array-like of shape (queries, k) or None, default=None
        What each list is sorted by, rising or falling. Neighbors with equal scores are ties.
        Without scores there are none.
    empty : {"skip", "zero", "error"}, default="skip"
        What to do with a query that has nothing relevant, as in `evaluate`.
    reference : array-like of int, shape (queries, at least k), or None, default=None
        Ids of each query's first items in a reference ranking, for `overlap@k`.
    exclude_self : bool or ndarray of int, shape (queries,), default=False
        Items to leave out of the lists and of what is relevant, as in `rankbits.count_ties`.
    n_items : int or None, default=None
        Number of items in the database; needed only if `affinity` is None.

    >>> from rankbits.affinity import classes
    >>> labels = classes([7], [7, 8, 7, 8])
    >>> evaluate_rankings([[1, 0, -1]], labels, ["P@2", "AP(total)@3"]).mean
    {'P@2': 0.5, 'AP(total)@3': 0.25}
    >>> evaluate_rankings([[1, 0]], labels, "RR@2", scores=[[0.5, 0.5]]).mean
    {'RR@2': 0.75}
    """
    _check.choice("empty", empty, EMPTY)
    requests = parse_metrics(metrics)
    refuse_radius(requests, _RANKED_BY)
    size = _database_size(affinity, n_items)
    lists = ranked_ids("ids", ids, size)
    ties = _tie_numbers(lists, scores)
    own = own_items(exclude_self, len(lists), size)
    if own is not None:
        lists = np.where((lists == own[:, None]) & (own[:, None] >= 0), NO_ITEM, lists)
    n_ranked = size if own is None else size - (own >= 0)
    _refuse_whole(requests, lists, n_ranked)

    def score(affinity: Affinity, requests: Sequence[NamedMetric]) -> Evaluation:
        require_shape(affinity, len(lists), size, "lists")
        return _score(_Lists(lists, ties, own), affinity, requests, empty)

    return score_all(requests, affinity, reference, (len(lists), size), score)


class _Lists:
    """Items of each query and the number of the tie that each is in, from 0."""

    def __init__(self, ids: np.ndarray, ties: np.ndarray, own: np.ndarray | None) -> None:
        self.ids, self.ties = ids, ties
        self.own = np.full(len(ids), -1) if own is None else own

    def histogram(
        self, queries: slice, affinity: Affinity, totals: np.ndarray, depth: int
    ) -> TieHistogram:
        """Rankings in which what was not returned comes last, a bucket for each tie.

        Relevant items that are missing stand behind every cutoff: where the database has too few
        others, items that do not exist fill the ranks between.
        """
        ids, ties = self.ids[queries], self.ties[queries]
        (n_queries, n_ties), n_levels = ids.shape, len(affinity.levels)
        rows, places = np.nonzero(ids != NO_ITEM)
        positions = affinity.pairs(rows + queries.start, ids[rows, places])
        shape = (n_queries, n_ties + 2, n_levels)
        cells = np.ravel_multi_index((rows, ties[rows, places], positions), shape)
        counts = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
        missing = totals[queries] - counts.sum(axis=1)
        n_returned = np.bincount(rows, minlength=n_queries)
        filled = np.maximum(missing[:, 0], depth - n_returned)
        counts[:, -2, 0] = np.where(missing[:, 1:].any(axis=1), filled, missing[:, 0])
        counts[:, -1, 1:] = missing[:, 1:]
        return TieHistogram(counts, affinity.levels)


def _score(
    lists: _Lists, affinity: Affinity, requests: Sequence[NamedMetric], empty: str
) -> Evaluation:
    n_queries, n_items = affinity.shape
    totals = count_relevant(affinity)
    rows = np.flatnonzero(lists.own >= 0)
    totals[rows, affinity.pairs(rows, lists.own[rows])] -= 1
    n_ranked = int(totals.sum(axis=1).max())
    inside = [_cut_inside(request, n_items) for request in requests]
    depth = depth_of(inside) or n_items
    values = {request.name: np.empty(n_queries) for request in requests}
    step = max(1, _CELLS // ((lists.ids.shape[1] + 2) * len(affinity.levels)))
    for start in range(0, n_queries, step):
        queries = slice(start, min(start + step, n_queries))
        hist = lists.histogram(queries, affinity, totals, depth)
        for request in inside:
            values[request.name][queries] = request.values(hist)
    values = apply_policy(values, totals[:, 1:].sum(axis=1), empty)
    return Evaluation(values, empty, _RANKED_BY, n_ranked, affinity.levels, None, tuple(requests))


def _cut_inside(request: NamedMetric, n_items: int) -> NamedMetric:
    """The same metric, cut at the end of the database at the latest: no rank lies beyond it."""
    return request if request.k is None else replace(request, k=min(request.k, n_items))


def _database_size(affinity: Affinity | None, n_items: int | None) -> int:
    if isinstance(affinity, Affinity):
        if n_items not in (None, affinity.shape[1]):
            raise InputError(f"n_items is {n_items}, affinity is over {affinity.shape[1]} items")
        return affinity.shape[1]
    if affinity is None and n_items is not None:
        return _check.whole("n_items", n_items, 1)
    raise InputError(
        "affinity must come from rankbits.affinity, or be None and n_items be given, got "
        f"{_check.describe(affinity)}"
    )


def _tie_numbers(ids: np.ndarray, scores: Any) -> np.ndarray:
    """Number of the tie of each place, from 0; places without an item do not matter."""
    if scores is None:
        return np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    numbers = _check.array("scores", scores)
    if numbers.shape != ids.shape or numbers.dtype.kind not in "biuf":
        raise InputError(
            f"scores must be real numbers of shape {ids.shape} as ids has, got "
            f"{_check.describe(numbers)}"
        )
    numbers = numbers.astype(np.float64)
    if np.isnan(numbers[ids != NO_ITEM]).any():
        row = int(np.argmax((np.isnan(numbers) & (ids != NO_ITEM)).any(axis=1)))
        raise InputError(f"scores must be numbers, query {row} has NaN")
    steps = _steps(numbers, ids != NO_ITEM)
    if (steps > 0).any() and (steps < 0).any():
        rises_first = (steps > 0).sum() > (steps < 0).sum()
        row = int(np.argmax((steps < 0 if rises_first else steps > 0).any(axis=1)))
        raise InputError(
            f"scores must fall along every list, or rise along every list, query {row} differs; "
            "sort the results by their scores first"
        )
    return np.cumsum(steps != 0, axis=1)


def _steps(scores: np.ndarray, is_there: np.ndarray) -> np.ndarray:
    """Sign of the change from the item before to each item; 0 for the first and where none is."""
    places = np.where(is_there, np.arange(scores.shape[1]), 0)
    last = np.maximum.accumulate(places, axis=1)[:, :-1]
    before = np.take_along_axis(scores, last, axis=1)
    has_both = is_there[:, 1:] & (np.cumsum(is_there, axis=1)[:, :-1] > 0)
    steps = np.zeros(scores.shape, np.int64)
    after = scores[:, 1:]
    steps[:, 1:] = np.where(has_both, np.int64(after > before) - np.int64(after < before), 0)
    return steps


def _refuse_whole(requests: Sequence[NamedMetric], ids: np.ndarray, n_ranked: Any) -> None:
    """Refuse metrics without a cutoff, unless the lists are whole rankings."""
    if ((ids != NO_ITEM).sum(axis=1) == n_ranked).all():
        return
    for request in requests:
        if request.k is None:
            example = "AP(total)@" if request.metric.name == "AP" else f"{request.metric.name}@"
            raise InputError(
                f"metric {request.name!r} needs the whole ranking, and lists of results do not "
                f"have every item; cut it, as in {example}{ids.shape[1]}"
            )
