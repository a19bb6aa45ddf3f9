"""Recall: the share of the relevant items that is retrieved.

The notation is that of `_sums/retrieved.py`.
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
    h, k, radius : TieHistogram, and int or None
        The histogram, and either the rank or the Hamming radius up to which items are retrieved, as
        in `precision`.

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
