"""Metrics of what is retrieved: the first k ranks, or the ball of a Hamming radius.

Notation:
    n, p  items and positives in a tie       N, P  the same, in all nearer ties
    m     places of a tie inside the cutoff  N+    all positives
    A cutoff takes exactly one of k, a rank, and radius, a distance, which is inclusive.
"""

import numpy as np

from rankbits import _check
from rankbits.errors import InputError
from rankbits.histogram import TieHistogram
from rankbits.metrics._ties import Ties, divide, histogram, ties_of


def precision(h: TieHistogram, k: int | None = None, radius: int | None = None) -> np.ndarray:
    """Expected share of positives in what is retrieved.

    Hits / retrieved, with hits = sum of p m / n over ties. A rank beyond the database retrieves all
    of it, so P@k divides by min(k, items). 0 for an empty ball and for a query without positives.
    Equation (hits) of docs/math.md.

    >>> h = TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1]))
    >>> precision(h, k=1).tolist(), precision(h, radius=1).round(3).tolist()
    ([0.5], [0.667])
    """
    hits, retrieved, _ = _retrieved(h, k, radius)
    return divide(hits, retrieved, 0.0)


def recall(h: TieHistogram, k: int | None = None, radius: int | None = None) -> np.ndarray:
    """Expected share of the positives that is retrieved; NaN where there are none.

    Hits / N+, with hits = sum of p m / n over ties. Equation (hits) of docs/math.md.

    >>> recall(TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1])), k=1).tolist()
    [0.25]
    """
    hits, _, n_positives = _retrieved(h, k, radius)
    return divide(hits, n_positives, np.nan)


def f1(h: TieHistogram, k: int | None = None, radius: int | None = None) -> np.ndarray:
    """Expected F1, the harmonic mean of precision and recall; NaN where there are no positives.

    2 hits / (retrieved + N+), which is linear in the hits. Equation (hits) of docs/math.md.

    >>> f1(TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1])), k=2).tolist()
    [0.5]
    """
    hits, retrieved, n_positives = _retrieved(h, k, radius)
    return np.where(n_positives > 0, divide(2.0 * hits, retrieved + n_positives, 0.0), np.nan)


def cumulative_gain(h: TieHistogram, radius: int) -> np.ndarray:
    """Mean affinity level of the items within a Hamming radius (ACG); 0 for an empty ball.

    Equation (ball) of docs/math.md; Wang et al., "Learning Hash Codes with Listwise Supervision",
    ICCV 2013.

    >>> cumulative_gain(TieHistogram(np.array([[[1, 1], [0, 2]]]), np.array([0, 3])), 1).tolist()
    [2.25]
    """
    inside = ball(h, radius).sum(axis=1)
    return divide(inside @ h.levels.astype(np.float64), inside.sum(axis=1), 0.0)


def empty_balls(h: TieHistogram, radius: int) -> np.ndarray:
    """Whether no item lies within the radius, a bool a query: there precision and ACG say 0.

    >>> empty_balls(TieHistogram(np.array([[[0, 0], [0, 2]]]), np.array([0, 1])), 0).tolist()
    [True]
    """
    nothing: np.ndarray = ball(h, radius).sum(axis=(1, 2)) == 0
    return nothing


def ball(h: TieHistogram, radius: int) -> np.ndarray:
    """The counts of h within the radius, a view."""
    radius = _check.whole("radius", radius, 0, histogram(h).n_bits)
    inside: np.ndarray = h.counts[:, : radius + 1]
    return inside


def expected_hits(ties: Ties, k: int) -> np.ndarray:
    """Expected number of positives within the first k ranks, one a query."""
    share = ties.places(k) / np.maximum(ties.n, 1.0)
    hits: np.ndarray = np.einsum("qd,qd->q", ties.p, share)
    return hits


def _retrieved(
    h: TieHistogram, k: int | None, radius: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expected hits, items retrieved and all positives, of each query."""
    if (k is None) == (radius is None):
        raise InputError(f"exactly one of k and radius must be given, got k={k}, radius={radius}")
    if radius is not None:
        inside = ball(h, radius).sum(axis=1)
        n_positives = h.counts[:, :, 1:].sum(axis=(1, 2))
        return inside[:, 1:].sum(axis=1), inside.sum(axis=1), n_positives
    k = _check.whole("k", k, 1)
    ties = ties_of(h)
    return expected_hits(ties, k), np.minimum(k, ties.n_items), ties.n_positives
