"""Average precision as scikit-learn defines it under ties; for comparison only."""

import numpy as np

from rankbits.histogram import TieHistogram
from rankbits.metrics._sums.ties import divide, ties_of


def sklearn_average_precision(h: TieHistogram) -> np.ndarray:
    """scikit-learn's `average_precision_score` with minus the distance as the score.

    Sum over ties of (p / N+) (P + p) / (N + n): every positive gets the precision at the end of its
    tie, as if all others of the tie came before it. NaN where nothing is relevant (scikit-learn
    says 0 and warns). Equation (sklearn) of docs/math.md.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.

    Returns
    -------
    values : ndarray of float64, shape (queries,)
        scikit-learn's average precision of each query.

    >>> h = TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1]))
    >>> sklearn_average_precision(h)
    array([0.58333333])
    """
    ties = ties_of(h)
    at_end = divide(ties.P + ties.p, ties.N + ties.n, 0.0)
    return divide((ties.p * at_end).sum(axis=1), ties.n_positives, np.nan)
