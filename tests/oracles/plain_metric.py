"""A metric in one file: what a new file in `metrics` has to say, and no more."""

import numpy as np

from rankbits import _check
from rankbits.metrics import Metric


def total_level(h, k):
    """Expected sum of the levels of the first k items: a tie adds m / n sum_v v n_v."""
    k, n = _check.whole("k", k, 1), h.items
    m = np.clip(k - (n.cumsum(axis=1) - n), 0, n)  # places of each tie within the first k ranks
    return (m * (h.counts @ h.levels) / np.maximum(n, 1)).sum(axis=1)


METRIC = Metric(
    name="CG",  # as users write it: evaluate(..., ["CG@10"])
    summary="sum of the levels of what is retrieved",
    function=total_level,
    cutoffs=("rank",),
    value_if_empty=0.0,
    aliases=("cumulativegain",),
)
