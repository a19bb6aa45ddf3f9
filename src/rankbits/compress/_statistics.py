"""How much of the quality is kept, and what another sample of queries would show.

Notation:
    v, r  value of a query by a candidate and by the float ranking      n  queries
    ρ     mean(v) / mean(r), the quality kept
    e     (v - ρ r) / mean(r), by how much a query pulls ρ up or down: ρ has the variance E[e²] / n
    s     a large e: of those that are not 0, one in twenty is larger

A ratio over n queries is one draw; another n queries give another draw. Both vary, so the ratio of
the others lies within ρ ± t sqrt(E[e²] (1/n + 1/n)), where t is Student's quantile. The difference
of two draws of one size is symmetric however skewed e is, which is why this simple form suits
losses, of which most are 0 and a few are large. A query like none of those at hand may come: one
more e of the size s stands for it, so that no interval is a point. A code that scores more than the
vectors it was made from owes that to the sample, so the lower end counts from 1 at most.
"""

from dataclasses import dataclass

import numpy as np

_SHARE = 0.95  # of the draws that an interval is to hold
_LARGE = 0.95  # share of the residuals that are smaller than s


@dataclass(frozen=True, eq=False)
class Kept:
    """Quality kept by candidates: arrays of one shape, the last axis without the queries.

    Attributes
    ----------
    value : ndarray
        Mean of the metric.
    kept : ndarray
        The mean divided by that of the float ranking.
    low, high : ndarray
        Where the ratio of as many other queries lies, in 95 of 100 samples.
    """

    value: np.ndarray
    kept: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def row(self, place: int) -> dict[str, float]:
        """One candidate, ready for JSON."""
        names = ("value", "kept", "low", "high")
        return {name: float(getattr(self, name)[place]) for name in names}


def quality_kept(values: np.ndarray, reference: np.ndarray, large: float) -> Kept:
    """Quality kept, and its prediction interval.

    Parameters
    ----------
    values : ndarray of shape (candidates, n)
        Value of each query by each candidate.
    reference : ndarray of shape (n,)
        Value of each query by the float ranking; its mean must not be 0.
    large : float
        s, from `large_residual`.
    """
    kept = values.mean(axis=1) / reference.mean()
    reach = prediction_reach(values, reference, large)
    return with_reach(values.mean(axis=1), kept, reach, reference)


def prediction_reach(values: np.ndarray, reference: np.ndarray, large: float) -> np.ndarray:
    """How far the ratio of as many other queries may lie; arguments as in `quality_kept`."""
    n, mean = len(reference), reference.mean()
    kept = values.mean(axis=1) / mean
    residuals = (values - kept[:, None] * reference) / mean
    variance = (np.square(residuals).sum(axis=1) + large**2) / n
    reach: np.ndarray = student_quantile(n - 1) * np.sqrt(variance * 2 / n)
    return reach


def with_reach(
    value: np.ndarray, kept: np.ndarray, reach: np.ndarray, reference: np.ndarray
) -> Kept:
    """The quality kept with an interval that reaches so far; no metric can be above 1."""
    low = np.maximum(np.minimum(kept, 1.0) - reach, 0.0)
    high = np.minimum(kept + reach, np.maximum(1 / reference.mean(), kept))
    return Kept(value, kept, low, high)


def large_residual(values: np.ndarray, reference: np.ndarray) -> float:
    """s: the 95th percentile of the sizes of e that are not 0, over all candidates; else 1.

    The percentile was chosen on drawn losses of many rates and sizes, of which every interval is to
    hold at least nine in ten; the mean size of e would miss the rare large losses of few queries.
    """
    mean = reference.mean()
    kept = values.mean(axis=1, keepdims=True) / mean
    sizes = np.abs(values - kept * reference) / mean
    sizes = sizes[(values != reference) & (sizes > 0)]
    return float(np.quantile(sizes, _LARGE)) if sizes.size else 1.0


def student_quantile(n_degrees: int) -> float:
    """The t beyond which, on either side, 2.5 of 100 draws lie.

    >>> round(student_quantile(10), 3)
    2.228
    """
    from scipy.special import stdtrit

    return float(stdtrit(max(1, n_degrees), 0.5 + _SHARE / 2))
