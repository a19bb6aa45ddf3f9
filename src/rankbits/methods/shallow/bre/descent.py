"""BRE's coordinate descent: one weight at a time, over all values that it may have.

Pairs of rows have targets t; codes have distances d / b. The loss is the mean of (t - d / b)² over
the pairs. With all bits but one given, which differ in d places, a pair saves

    saving = (t - d / b)² - (t - (d + 1) / b)² = (2 (t - d / b) - 1 / b) / b

if the bit differs. The bit of row i is r_i + w k_i > 0 as a function of one weight w: it changes
once, at w = -r_i / k_i. Between two such thresholds in their order no bit changes, so the savings
are a step function of w with n + 1 steps. A pair differs, or stops to differ, between the
thresholds of its two rows: two sums by threshold, added up in order, give the savings of all steps.

B. Kulis, T. Darrell, "Learning to hash with binary reconstructive embeddings", NIPS 2009.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankbits.methods.shallow.shared.pair_sampling import RowPairs


@dataclass(frozen=True, eq=False)
class TargetPairs(RowPairs):
    """Pairs, each once, and the share of bits in which their codes are to differ.

    Attributes
    ----------
    targets : ndarray of float64, shape (pairs,)
    """

    targets: np.ndarray

    def loss(self, distances: np.ndarray, n_bits: int) -> float:
        """Mean of (t - d / b)²."""
        return float(np.mean((self.targets - distances / n_bits) ** 2))

    def savings(self, distances: np.ndarray, n_bits: int) -> np.ndarray:
        """What each pair saves if one more bit differs, besides those counted."""
        savings: np.ndarray = (2 * (self.targets - distances / n_bits) - 1 / n_bits) / n_bits
        return savings


def descend_weights(
    features: np.ndarray, weights: np.ndarray, pairs: TargetPairs, max_sweeps: int, tolerance: float
) -> Iterator[float]:
    """Move weights (m, b) in place; the losses of the first ones and after each sweep over all.

    Weights that are 0 at first stay so: a bit sees no more than its own points. Sweeps end once one
    of them lowers the loss by no more than this share of it.
    """
    n_bits = weights.shape[1]
    points = [np.flatnonzero(weights[:, k]) for k in range(n_bits)]
    distances = pairs.count_differing(features @ weights > 0)
    loss = pairs.loss(distances, n_bits)
    yield loss
    for _ in range(max_sweeps):
        for k in range(n_bits):
            own = np.asfortranarray(features[:, points[k]])
            others = distances - pairs.differ(own @ weights[points[k], k] > 0)
            savings = pairs.savings(others, n_bits)
            weights[points[k], k] = descend_bit(own, weights[points[k], k], pairs, savings)
            distances = others + pairs.differ(own @ weights[points[k], k] > 0)
        loss_before, loss = loss, pairs.loss(distances, n_bits)
        yield loss
        if loss_before - loss <= tolerance * loss_before:
            return


def descend_bit(
    features: np.ndarray, weights: np.ndarray, pairs: TargetPairs, savings: np.ndarray
) -> np.ndarray:
    """The weights (s,) of one bit after each of them took the value with the most savings.

    A weight moves only if the bits, as they are computed, save more than before.
    """
    weights = weights.copy()
    activations = features @ weights
    saved = savings[pairs.differ(activations > 0)].sum()
    for q, column in enumerate(features.T):
        moved = weights.copy()
        moved[q] = best_value(activations - weights[q] * column, column, pairs, savings)
        moved_activations = features @ moved
        moved_saved = savings[pairs.differ(moved_activations > 0)].sum()
        if moved_saved > saved:
            weights, activations, saved = moved, moved_activations, moved_saved
    return weights


def best_value(
    rest: np.ndarray, column: np.ndarray, pairs: TargetPairs, savings: np.ndarray
) -> float:
    """The w with the most savings of the bits rest + w column > 0."""
    moves = column != 0
    thresholds = -rest[moves] / column[moves]
    order = np.argsort(thresholds, kind="stable")
    ascending, n = thresholds[order], len(order)
    place = np.full(len(rest), n)  # of a row's threshold in their order; n if it has none
    place[np.flatnonzero(moves)[order]] = np.arange(n)
    starts = np.where(moves, column < 0, rest > 0)  # the bits of the smallest w
    changes = np.where(pairs.differ(starts), -savings, savings)
    places = np.stack([place[pairs.first], place[pairs.second]])
    begins = np.bincount(places.min(axis=0) + 1, changes, minlength=n + 2)
    ends = np.bincount(places.max(axis=0) + 1, changes, minlength=n + 2)
    saved = np.cumsum(begins - ends)[: n + 1]  # after the first 0, 1, ..., n thresholds
    return _between(ascending, saved)


def _between(ascending: np.ndarray, saved: np.ndarray) -> float:
    """A value within the step with the most savings; thresholds that are equal are one."""
    if not len(ascending):
        return 0.0
    margin = 1.0 + ascending[-1] - ascending[0]
    edges = np.concatenate([[ascending[0] - margin], ascending, [ascending[-1] + margin]])
    middles = (edges[:-1] + edges[1:]) / 2
    is_open = (edges[:-1] < middles) & (middles < edges[1:])
    return float(middles[np.where(is_open, saved, -np.inf).argmax()])
