"""What made a number: the function behind each metric name, and its conventions in words."""

import numpy as np

from rankbits import metrics
from rankbits.evaluation._names import Metric
from rankbits.histogram import TieHistogram

_TIES = {
    "": "expectation over all orders of tied items",
    "best": "relevant items first in each tie",
    "worst": "relevant items last in each tie",
}
_NORMALISERS = {
    "retrieved": "divided by the relevant items among the first k; 0 if there are none",
    "min": "divided by min(k, relevant items)",
    "total": "divided by all relevant items",
}
_GAINS = {"exp": "2^v - 1", "linear": "v"}
_DISCOUNTS = {
    "log2": "1 / log2(rank + 1)",
    "rsh": "1 at rank 1, 1 / log2(rank) from rank 2",
}
_EMPTY = {
    "skip": "a query with nothing relevant is left out of the mean and counted",
    "zero": "a query with nothing relevant scores 0",
    "error": "a query with nothing relevant is an error",
}
_ALWAYS_DEFINED = ("P", "Hit", "ACG", "LGAP")


def values(metric: Metric, hist: TieHistogram) -> np.ndarray:
    """The metric of each query, NaN where it is undefined."""
    if metric.family in ("AP", "nDCG"):
        return _ranking(metric, hist)
    if metric.family == "Hit":
        return metrics.hit_rate(hist, metric.cut)
    if metric.family == "RR":
        return metrics.reciprocal_rank(hist)
    if metric.family == "ACG":
        return metrics.cumulative_gain(hist, metric.cut)
    cut = {"P": metrics.precision, "R": metrics.recall, "F1": metrics.f1}[metric.family]
    return cut(hist, k=metric.k, radius=metric.radius)


def _ranking(metric: Metric, hist: TieHistogram) -> np.ndarray:
    """AP or nDCG, in expectation or at one of its bounds."""
    if metric.family == "AP":
        if not metric.bound:
            return metrics.average_precision(hist, k=metric.k, normalise=metric.normalise)
        worst, best = metrics.average_precision_bounds(hist)
    else:
        if not metric.bound:
            return metrics.ndcg(hist, metric.k, metric.gain, metric.discount)
        worst, best = metrics.ndcg_bounds(hist, metric.k, metric.gain, metric.discount)
    return best if metric.bound == "best" else worst


def conventions(metric: Metric, empty: str) -> dict[str, str]:
    """The choices behind the metric, one short sentence each."""
    said = {"cutoff": _cutoff(metric)}
    if metric.radius is None:
        said["ties"] = _TIES[metric.bound]
    if metric.family == "AP":
        by_k = metric.k is not None
        said["normalise"] = _NORMALISERS[metric.normalise if by_k else "total"]
    if metric.family == "nDCG":
        said["gain"] = f"{metric.gain}: {_GAINS[metric.gain]}"
        said["discount"] = f"{metric.discount}: {_DISCOUNTS[metric.discount]}"
    if metric.family == "LGAP":
        said["lookup"] = "mean over radii 0..r of precision times use of the codes in the ball"
    if metric.radius is not None:
        said["empty_ball"] = "a query with no item within the radius scores 0"
    counts_zero = empty == "skip" and metric.family in _ALWAYS_DEFINED
    said["empty_query"] = _EMPTY["zero" if counts_zero else empty]
    return said


def _cutoff(metric: Metric) -> str:
    if metric.radius is not None:
        return f"items within Hamming distance {metric.radius}, inclusive"
    return "none" if metric.k is None else f"the first {metric.k} items"
