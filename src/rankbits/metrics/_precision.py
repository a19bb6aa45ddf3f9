"""Precision: the share of what is retrieved that is relevant.

The notation is that of `_sums/retrieved.py`.
"""

import numpy as np

from rankbits.histogram import TieHistogram
from rankbits.metrics._metric import Metric
from rankbits.metrics._sums.retrieved import retrieved
from rankbits.metrics._sums.ties import divide


def precision(h: TieHistogram, k: int | None = None, radius: int | None = None) -> np.ndarray:
    """Expected share of positives in what is retrieved.

    Hits / retrieved, with hits = sum of p m / n over ties. A rank beyond the database retrieves all
    of it, so P@k divides by min(k, items). 0 for an empty ball and for a query without positives.
    Equation (hits) of docs/math.md.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    k : int or None, default=None
        Number of items to retrieve, at least 1. Exactly one of k and radius must be given.
    radius : int or None, default=None
        Hamming radius, from 0 to the code length; every item within it, inclusive, is retrieved.

    Returns
    -------
    values : ndarray of float64, shape (queries,)
        Precision of each query, from 0 to 1.

    >>> h = TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1]))
    >>> precision(h, k=1).tolist(), precision(h, radius=1).round(3).tolist()
    ([0.5], [0.667])
    """
    hits, n_retrieved, _ = retrieved(h, k, radius)
    return divide(hits, n_retrieved, 0.0)


METRIC = Metric(
    name="P",
    summary="share of what is retrieved that is relevant (precision)",
    function=precision,
    cutoffs=("rank", "radius"),
    value_if_empty=0.0,
    words={"rank": {"divisor": "divided by min(k, items)"}},
    aliases=("precision", "prec"),
)
