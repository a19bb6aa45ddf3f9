"""Local group average precision: how good the near codes are, and how evenly they are used.

Notation:
    b  bits in a code       S_k  database items within distance k of a query

The one metric that the tie histogram alone does not give: it needs the items on the most used code.
"""

from math import comb

import numpy as np

from rankbits import _check
from rankbits.affinity import Affinity
from rankbits.codes import BinaryCodes, hamming_distances
from rankbits.errors import InputError
from rankbits.histogram import (
    TieHistogram,
    count_ties,
    distinct_codes,
    largest_codes,
    own_items,
)
from rankbits.metrics._metric import Metric
from rankbits.metrics._sums.ties import divide, ties_of

_CELLS = 1 << 22
_MOST_CODES = 10**290  # a ball so large scores 0 to 280 digits


def lgap(
    queries: BinaryCodes,
    database: BinaryCodes,
    affinity: Affinity,
    radius: int = 2,
    exclude_self: bool | np.ndarray = False,
    *,
    n_threads: int | None = None,
) -> np.ndarray:
    """Local group average precision: precision of balls, weighted by how evenly codes fill them.

    LGAP@r = sum_{k=0..r} P@k phi(S_k) / (r + 1), with phi = items of S_k / (items on its most used
    code * number of codes in the ball). An empty ball adds 0; 0 for a query without positives.
    Equation (LGAP) of docs/math.md; Ding, Li & Li, "Mean Local Group Average Precision (mLGAP)".

    Parameters
    ----------
    queries : BinaryCodes
        Codes of the queries.
    database : BinaryCodes
        Codes of the database items, of the same length as those of the queries.
    affinity : Affinity
        Affinity of these queries to these items, from `rankbits.affinity`.
    radius : int, default=2
        Largest Hamming radius r of the balls, from 0 to the code length.
    exclude_self : bool or ndarray of int, shape (queries,), default=False
        Whether to leave out the item that is the query itself. True means that query i is item i of
        the database; an array has the database row of each query's own item, -1 if it has none.
    n_threads : int or None, default=None
        Number of threads, from 1 to 1024. None takes the environment variable RANKBITS_NUM_THREADS,
        or every processor that this process may use if the variable is not set.

    Returns
    -------
    values : ndarray of float64, shape (queries,)
        LGAP of each query.

    >>> from rankbits.affinity import classes
    >>> codes = BinaryCodes.from_bits([[0, 0], [0, 0], [0, 1]])
    >>> lgap(codes[:1], codes, classes([1], [1, 0, 1]), radius=1).round(5).tolist()
    [0.41667]
    """
    h = count_ties(queries, database, affinity, exclude_self, n_threads=n_threads)
    _check.whole("radius", radius, 0, queries.n_bits)
    return lgap_from_counts(h, crowds(queries, database, exclude_self, n_threads=n_threads), radius)


def crowds(
    queries: BinaryCodes,
    database: BinaryCodes,
    exclude_self: bool | np.ndarray = False,
    *,
    n_threads: int | None = None,
) -> np.ndarray:
    """Items on the most used code at each distance, (queries, b + 1), a query's own left out.

    This is what LGAP needs besides the histogram.

    Parameters
    ----------
    queries : BinaryCodes
        Codes of the queries.
    database : BinaryCodes
        Codes of the database items, of the same length as those of the queries.
    exclude_self : bool or ndarray of int, shape (queries,), default=False
        Whether to leave out the item that is the query itself. True means that query i is item i of
        the database; an array has the database row of each query's own item, -1 if it has none.
    n_threads : int or None, default=None
        Number of threads, from 1 to 1024. None takes the environment variable RANKBITS_NUM_THREADS,
        or every processor that this process may use if the variable is not set.

    Returns
    -------
    largest : ndarray of int64, shape (queries, b + 1)
        Column d is for Hamming distance d; 0 where no item lies at that distance.

    >>> codes = BinaryCodes.from_bits([[0, 0], [0, 0], [0, 1]])
    >>> crowds(codes, codes, exclude_self=True).tolist()
    [[1, 1, 0], [1, 1, 0], [0, 2, 0]]
    """
    largest = largest_codes(queries, database, n_threads=n_threads)
    own = own_items(exclude_self, len(queries), len(database))
    if own is not None:
        _leave_out(own, queries, database, largest)
    return largest


def lgap_from_counts(h: TieHistogram, largest: np.ndarray, radius: int = 2) -> np.ndarray:
    """LGAP from a histogram and the items on the most used code at each distance.

    See `lgap` for the equation.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    largest : ndarray of int, shape (queries, b + 1)
        Number of items on the most used code at each distance, as `crowds` returns it.
    radius : int, default=2
        Largest Hamming radius r of the balls, from 0 to the code length.

    Returns
    -------
    values : ndarray of float64, shape (queries,)
        LGAP of each query.

    >>> h = TieHistogram(np.array([[[1, 1], [0, 1], [0, 0]]]), np.array([0, 1]))
    >>> lgap_from_counts(h, np.array([[2, 1, 0]]), radius=1).round(5).tolist()
    [0.41667]
    """
    ties = ties_of(h)
    radius = _check.whole("radius", radius, 0, h.n_bits)
    largest = np.asarray(largest)
    if largest.shape != ties.n.shape:
        raise InputError(
            f"largest must have shape {ties.n.shape}, got {_check.describe(largest)}; "
            "compute it with metrics.crowds()"
        )
    sizes = _codes_in_balls(h.n_bits, radius)
    near = slice(0, radius + 1)
    crowd = np.maximum.accumulate(largest[:, near], axis=1)
    positives = ties.P[:, near] + ties.p[:, near]  # P@k phi = positives / (crowd * codes)
    values: np.ndarray = divide(positives, crowd * sizes, 0.0).mean(axis=1)
    return values


def _codes_in_balls(n_bits: int, radius: int) -> np.ndarray:
    """Number of codes within distance 0..radius, as doubles; capped before they overflow."""
    n_codes, sizes = 0, []
    for k in range(radius + 1):
        n_codes += comb(n_bits, k)
        sizes.append(float(min(n_codes, _MOST_CODES)))
    return np.array(sizes)


def _leave_out(
    own: np.ndarray, queries: BinaryCodes, database: BinaryCodes, largest: np.ndarray
) -> None:
    """Correct the most used codes for one item less on the code of each query's own item."""
    distinct, n_items = distinct_codes(database)
    codes = BinaryCodes(distinct, database.n_bits)
    query_rows = np.flatnonzero(own >= 0)
    size = max(1, _CELLS // len(codes))
    for start in range(0, len(query_rows), size):
        rows = query_rows[start : start + size]
        own_codes = BinaryCodes(database.packed[own[rows]], database.n_bits)
        is_own = hamming_distances(own_codes, codes) == 0
        different = queries.packed[rows] ^ own_codes.packed
        distance = np.bitwise_count(different).sum(axis=1, dtype=np.int64)
        is_there = hamming_distances(queries[rows], codes) == distance[:, None]
        largest[rows, distance] = np.where(is_there, n_items - is_own, 0).max(axis=1)


METRIC = Metric(
    name="LGAP",
    summary="precision of the balls up to a radius, weighted by how evenly their codes are used",
    function=lgap_from_counts,
    count_codes=crowds,
    cutoffs=("radius",),
    value_if_empty=0.0,
    words={
        "radius": {"lookup": "mean over radii 0..r of precision times use of the codes in the ball"}
    },
    aliases=("mlgap",),
)
