"""Precision and recall along the ranking: by Hamming radius, or against the number retrieved.

Every curve is an array (queries, points); averaging over queries is the job of `evaluate`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rankbits import _check
from rankbits.errors import InputError
from rankbits.histogram import TieHistogram
from rankbits.metrics._sums.retrieved import expected_hits
from rankbits.metrics._sums.ties import Ties, divide, ties_of


class PrecisionRecall(NamedTuple):
    """Two arrays of shape (queries, points).

    Attributes
    ----------
    precision : ndarray of float64, shape (queries, points)
        Precision of each query at each point of the curve.
    recall : ndarray of float64, shape (queries, points)
        Recall of each query at the same points. NaN where nothing is relevant to the query.
    """

    precision: np.ndarray
    recall: np.ndarray


def precision_recall_by_radius(h: TieHistogram) -> PrecisionRecall:
    """Precision and recall of the balls of radius 0..b, each (queries, b + 1).

    An empty ball has precision 0; recall is NaN where nothing is relevant. Equation (ball) of
    docs/math.md.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.

    >>> precision_recall_by_radius(TieHistogram(np.array([[[1, 1], [1, 1]]]), np.array([0, 1])))
    PrecisionRecall(precision=array([[0.5, 0.5]]), recall=array([[0.5, 1. ]]))
    """
    ties = ties_of(h)
    hits = ties.P + ties.p
    return PrecisionRecall(
        divide(hits, ties.N + ties.n, 0.0), divide(hits, ties.n_positives[:, None], np.nan)
    )


def precision_recall_by_rank(h: TieHistogram, ranks: Sequence[int]) -> PrecisionRecall:
    """Expected precision and recall of the first k items for each k of ranks, (queries, ranks).

    A rank beyond the database retrieves all of it; recall is NaN where nothing is relevant.
    Equation (hits) of docs/math.md.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    ranks : sequence of int
        Numbers of items to retrieve, each at least 1, in any order.

    >>> h = TieHistogram(np.array([[[1, 1], [0, 2]]]), np.array([0, 1]))
    >>> precision_recall_by_rank(h, [1, 4]).precision.tolist()
    [[0.5, 0.75]]
    """
    ties, ks = ties_of(h), _ranks(ranks)
    hits = _hits(ties, ks)
    return PrecisionRecall(
        divide(hits, np.minimum(ks, ties.n_items[:, None]), 0.0),
        divide(hits, ties.n_positives[:, None], np.nan),
    )


def precision_curve(h: TieHistogram, ranks: Sequence[int]) -> np.ndarray:
    """Expected precision against the number retrieved, (queries, ranks); see `precision`.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    ranks : sequence of int
        Numbers of items to retrieve, each at least 1, in any order.

    Returns
    -------
    precision : ndarray of float64, shape (queries, ranks)
        Column i is the precision of the first ranks[i] items.
    """
    return precision_recall_by_rank(h, ranks).precision


def recall_curve(h: TieHistogram, ranks: Sequence[int]) -> np.ndarray:
    """Expected recall against the number retrieved, (queries, ranks); see `recall`.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    ranks : sequence of int
        Numbers of items to retrieve, each at least 1, in any order.

    Returns
    -------
    recall : ndarray of float64, shape (queries, ranks)
        Column i is the recall of the first ranks[i] items. NaN where nothing is relevant to
        the query.
    """
    return precision_recall_by_rank(h, ranks).recall


def _hits(ties: Ties, ks: np.ndarray) -> np.ndarray:
    hits = np.empty((len(ties.n_items), len(ks)))
    for column, k in enumerate(ks.tolist()):
        hits[:, column] = expected_hits(ties, k)
    return hits


def _ranks(ranks: Sequence[int]) -> np.ndarray:
    """Ranks from 1, in any order."""
    array = np.asarray(ranks)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.size == 0 or array.min() < 1:
        raise InputError(f"ranks must be a list of integers >= 1, got {_check.describe(ranks)}")
    return array.astype(np.int64)
