"""Recall: the share of the relevant items that is retrieved.

Notation:
    n, p  items and positives in a tie       N+  all positives
    m     places of a tie inside the cutoff
"""

import numpy as np

from rankbits.histogram import TieHistogram
from rankbits.metrics._metric import Metric
from rankbits.metrics._sums.retrieved import retrieved
from rankbits.metrics._sums.ties import divide


def recall(h: TieHistogram, k: int | None = None, radius: int | None = None) -> np.ndarray:
    """Expected share of the positives that is retrieved; NaN where there are none.

    Hits / N+, with hits = sum of p m / n over ties. Equation (hits) of docs/math.md.

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
        Recall of each query, from 0 to 1. NaN where nothing is relevant to the query.

    >>> recall(TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1])), k=1).tolist()
    [0.25]
    """
    hits, _, n_positives = retrieved(h, k, radius)
    return divide(hits, n_positives, np.nan)


METRIC = Metric(
    name="R",
    summary="share of the relevant items that is retrieved (recall)",
    function=recall,
    cutoffs=("rank", "radius"),
    aliases=("recall",),
)
