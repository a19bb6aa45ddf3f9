"""F1: precision and recall in one number.

The notation is that of `_sums/retrieved.py`.
"""

import numpy as np

from rankbits.histogram import TieHistogram
from rankbits.metrics._metric import Metric
from rankbits.metrics._sums.retrieved import retrieved
from rankbits.metrics._sums.ties import divide


def f1(h: TieHistogram, k: int | None = None, radius: int | None = None) -> np.ndarray:
    """Expected F1, the harmonic mean of precision and recall; NaN where there are no positives.

    2 hits / (retrieved + N+), which is linear in the hits. Equation (hits) of docs/math.md.

    Parameters
    ----------
    h, k, radius : TieHistogram, and int or None
        The histogram, and either the rank or the Hamming radius up to which items are retrieved, as
        in `precision`.

    Returns
    -------
    values : ndarray of float64, shape (queries,)
        F1 of each query, from 0 to 1. NaN where nothing is relevant to the query.

    >>> f1(TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1])), k=2).tolist()
    [0.5]
    """
    hits, n_retrieved, n_positives = retrieved(h, k, radius)
    return np.where(n_positives > 0, divide(2.0 * hits, n_retrieved + n_positives, 0.0), np.nan)


METRIC = Metric(
    name="F1",
    summary="harmonic mean of precision and recall",
    function=f1,
    cutoffs=("rank", "radius"),
    words={"rank": {"divisor": "precision is divided by min(k, items)"}},
    aliases=("f", "fscore", "fmeasure"),
)
