"""What is retrieved: the first k ranks, or the ball of a Hamming radius.

Notation, here and in precision, recall and F1:
    n, p  items and positives in a tie       N+  all positives
    m     places of a tie inside the cutoff
    A cutoff takes exactly one of k, a rank, and radius, a distance, which is inclusive.
"""

import numpy as np

from rankbits import _check
from rankbits.errors import InputError
from rankbits.histogram import TieHistogram
from rankbits.metrics._sums.ties import Ties, histogram, ties_of


def retrieved(
    h: TieHistogram, k: int | None, radius: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expected hits, items retrieved and all positives, of each query; equation (hits)."""
    if (k is None) == (radius is None):
        raise InputError(f"exactly one of k and radius must be given, got k={k}, radius={radius}")
    if radius is not None:
        inside = ball(h, radius).sum(axis=1)
        n_positives = h.counts[:, :, 1:].sum(axis=(1, 2))
        return inside[:, 1:].sum(axis=1), inside.sum(axis=1), n_positives
    k = _check.whole("k", k, 1)
    ties = ties_of(h)
    return expected_hits(ties, k), np.minimum(k, ties.n_items), ties.n_positives


def expected_hits(ties: Ties, k: int) -> np.ndarray:
    """Expected number of positives within the first k ranks, one per query."""
    share = ties.places(k) / np.maximum(ties.n, 1.0)
    hits: np.ndarray = np.einsum("qd,qd->q", ties.p, share)
    return hits


def ball(h: TieHistogram, radius: int) -> np.ndarray:
    """The counts of h within the radius, a view."""
    radius = _check.whole("radius", radius, 0, histogram(h).n_bits)
    inside: np.ndarray = h.counts[:, : radius + 1]
    return inside


def empty_balls(h: TieHistogram, radius: int) -> np.ndarray:
    """Whether no item lies within the radius, one bool per query: there precision and ACG say 0.

    Parameters
    ----------
    h : TieHistogram
        Counts of database items by Hamming distance and affinity level, one row per query.
    radius : int
        Hamming radius, inclusive, from 0 to the code length.

    >>> empty_balls(TieHistogram(np.array([[[0, 0], [0, 2]]]), np.array([0, 1])), 0).tolist()
    [True]
    """
    nothing: np.ndarray = ball(h, radius).sum(axis=(1, 2)) == 0
    return nothing
