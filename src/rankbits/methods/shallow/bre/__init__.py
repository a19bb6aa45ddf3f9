"""BRE: kernel hyperplanes whose codes reconstruct distances.

    minimize  mean over pairs of (t - d / b)²,    d the Hamming distance of the codes of b bits

The target t is 0 for similar pairs and 1 for others, or, without y, the squared distance of the
rows, scaled to a mean of ½. Bit k is the sign of a weighted sum over the kernel features of a few
points of its own, and `descent` searches one weight after another exactly.

What differs from the paper:
- Pairs are drawn once, for each row as many similar as other ones; the paper draws among all. With
  many classes nearly all pairs are dissimilar, and codes would only learn to differ.
- The points of all bits are drawn from a common set of anchors, so that encoding needs few kernel
  values, and kernel features are centered, so that bits can be balanced.
- The scale of the distances is our choice: codes with balanced, independent bits have distances of
  b / 2 in the mean.

B. Kulis, T. Darrell, "Learning to hash with binary reconstructive embeddings", NIPS 2009.
"""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.errors import InputError
from rankbits.methods.parameters.common import RANDOM_STATE, VERBOSE, Seed
from rankbits.methods.parameters.fields import integer, learned, parameter
from rankbits.methods.shallow.bre.descent import TargetPairs, descend_weights
from rankbits.methods.shallow.shared.kernel_hasher import KernelHasher
from rankbits.methods.shallow.shared.pair_sampling import draw_pairs, supervise_pairs
from rankbits.methods.shallow.shared.parameters import GAMMA, N_ANCHORS, N_ROWS
from rankbits.methods.shallow.shared.progress import show_progress
from rankbits.methods.shallow.shared.similarity import draw_rows
from rankbits.methods.supervision import Supervision

_TOLERANCE = 1e-3


class BRE(KernelHasher):
    """Binary reconstructive embedding: Hamming distances fitted to targets of pairs [1]_.

    Parameters
    ----------
    n_points : int, default=20
        Anchors that a bit weighs, drawn for each bit; all of them if there are no more.
    n_partners : int, default=50
        Partners that each row draws, half of them similar if y says which rows are.
    max_sweeps : int, default=10
        Largest number of sweeps over all weights; they end sooner once a sweep lowers the loss by
        less than a thousandth.

    Attributes
    ----------
    mean_ : ndarray of shape (n_anchors,)
        Mean of the kernel features of the training rows.
    planes_ : ndarray of shape (n_anchors, n_bits)
        The weights; those of anchors that are no points of a bit are 0.
    anchors_ : RbfAnchors
        The map from rows to kernel features.
    losses_ : ndarray of shape (sweeps + 1,)
        The loss of the first weights and after each sweep; it never rises.

    References
    ----------
    .. [1] B. Kulis, T. Darrell, "Learning to hash with binary reconstructive embeddings", NIPS
       2009.

    Examples
    --------
    >>> from rankbits.datasets import digits
    >>> data = digits()
    >>> hasher = BRE(8, n_points=5, max_sweeps=2, random_state=0)
    >>> hasher.fit(data.query_x, data.query_y).encode(data.query_x)
    BinaryCodes(n=297, n_bits=8)
    """

    n_points: int = parameter(20, integer(1))
    n_anchors: int = N_ANCHORS
    gamma: float | None = GAMMA
    n_partners: int = parameter(50, integer(2))
    n_rows: int | None = N_ROWS
    max_sweeps: int = parameter(10, integer(1))
    verbose: bool | str = VERBOSE
    random_state: Seed = RANDOM_STATE

    _is_orthonormal: ClassVar[bool] = False

    losses_: np.ndarray = learned("sweeps")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            Two rows are similar if they share a class or a tag, or if either has a level above 0
            for the other. With None, Hamming distances follow the distances of the rows.
        """
        rng = check_random_state(self.random_state)
        rows = self._training_rows(X, y)
        supervision = None if y is None else supervise_pairs(rows, y)
        features = self._draw_anchors(rows, rng)
        self.mean_ = features.mean(axis=0)
        chosen, pairs = self._draw_pairs(rows, supervision, rng)
        self.planes_ = draw_weights(features.shape[1], self.n_bits, self.n_points, rng)
        centered, losses = features[chosen] - self.mean_, []
        with show_progress(self.verbose, "sweep", self.max_sweeps + 1) as advance:
            for loss in descend_weights(centered, self.planes_, pairs, self.max_sweeps, _TOLERANCE):
                losses.append(loss)
                advance(f"loss {loss:.4f}")
        self.losses_ = np.array(losses)
        return self

    def _draw_pairs(
        self, rows: np.ndarray, supervision: Supervision | None, rng: np.random.RandomState
    ) -> tuple[np.ndarray, TargetPairs]:
        """Positions of the rows that are learned from, and pairs among them."""
        generator = np.random.default_rng(rng.randint(1 << 31))
        if supervision is None:
            chosen = generator.permutation(len(rows))[: self.n_rows or len(rows)]
            return chosen, pairs_by_distance(rows[chosen], self.n_partners, generator)
        chosen = draw_rows(supervision, self.n_rows, rng)
        half = self.n_partners // 2
        pairs = draw_pairs(supervision.take(chosen), half, self.n_partners - half, generator)
        is_once = pairs.first < pairs.second
        targets = np.where(pairs.is_similar[is_once], 0.0, 1.0)
        return chosen, TargetPairs(pairs.first[is_once], pairs.second[is_once], targets)


def pairs_by_distance(
    rows: np.ndarray, n_partners: int, generator: np.random.Generator
) -> TargetPairs:
    """Random pairs of rows; their targets are squared distances, scaled to a mean of ½."""
    n = len(rows)
    if n < 2:
        raise InputError("X must have at least two rows to form pairs, got n_samples = 1")
    first = np.repeat(np.arange(n), n_partners)
    second = (first + generator.integers(1, n, len(first))) % n
    low, high = np.divmod(np.unique(np.minimum(first, second) * n + np.maximum(first, second)), n)
    squares = np.concatenate(
        [
            ((rows[low[start : start + n]] - rows[high[start : start + n]]) ** 2).sum(axis=1)
            for start in range(0, len(low), n)
        ]
    )
    return TargetPairs(low, high, 0.5 * squares / squares.mean())


def draw_weights(
    n_anchors: int, n_bits: int, n_points: int, rng: np.random.RandomState
) -> np.ndarray:
    """First weights (m, b): normal for the points of a bit, 0 for all other anchors."""
    weights = np.zeros((n_anchors, n_bits))
    for bit in weights.T:
        points = rng.choice(n_anchors, min(n_points, n_anchors), replace=False)
        bit[points] = rng.standard_normal(len(points))
    return weights
