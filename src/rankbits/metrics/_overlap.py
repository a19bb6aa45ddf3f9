"""Overlap: how much of another ranking's head is found again.

Notation:
    n, p  items and positives in a tie, where the positives are the head of the reference ranking
    m     places of a tie inside the cutoff
"""

import numpy as np

from rankbits.histogram import TieHistogram
from rankbits.metrics._metric import Metric
from rankbits.metrics._recall import recall


def overlap(h: TieHistogram, k: int) -> np.ndarray:
    """Expected share of the positives within the first k ranks; NaN where there are none.

    With the first k items of a reference ranking as the positives, it is the part of them that
    another ranking also has among its first k: the recall of Equation (hits) of docs/math.md.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by distance, level 1 for the first k items of the reference.
    k : int
        Number of items at the head of both rankings, at least 1.

    Returns
    -------
    values : ndarray of float64, shape (queries,)
        Overlap of each query, from 0 to 1.

    >>> overlap(TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1])), k=2).tolist()
    [0.5]
    """
    return recall(h, k=k)


METRIC = Metric(
    name="overlap",
    summary="share of the first k items of a reference ranking that are among the first k",
    function=overlap,
    cutoffs=("rank",),
    words={"rank": {"relevant": "the first k items of the reference ranking"}},
    reads_reference=True,
    aliases=("overlapatk", "recallofreference"),
)
