"""Average cumulative gain (ACG): how relevant the items near a query are, on average."""

import numpy as np

from rankbits.histogram import TieHistogram
from rankbits.metrics._metric import Metric
from rankbits.metrics._sums.retrieved import ball
from rankbits.metrics._sums.ties import divide


def cumulative_gain(h: TieHistogram, radius: int) -> np.ndarray:
    """Mean affinity level of the items within a Hamming radius (ACG); 0 for an empty ball.

    Equation (ball) of docs/math.md; Wang et al., "Learning Hash Codes with Listwise Supervision",
    ICCV 2013.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    radius : int
        Hamming radius, inclusive, from 0 to the code length.

    Returns
    -------
    values : ndarray of float64, shape (queries,)
        Mean affinity level around each query.

    >>> cumulative_gain(TieHistogram(np.array([[[1, 1], [0, 2]]]), np.array([0, 3])), 1).tolist()
    [2.25]
    """
    inside = ball(h, radius).sum(axis=1)
    return divide(inside @ h.levels.astype(np.float64), inside.sum(axis=1), 0.0)


METRIC = Metric(
    name="ACG",
    summary="mean level of the items within a Hamming radius",
    function=cumulative_gain,
    cutoffs=("radius",),
    value_if_empty=0.0,
    aliases=("macg",),
)
