"""LWH: hyperplanes learned by a structural SVM of whole ranking lists [1]_.

    F(q, X, y) = <W W', Ψ(q, X, y)>,  Ψ = sum over relevant i, irrelevant j of y_ij q (x_i - x_j)',
                                      divided by the number of such pairs; y_ij is 1 or -1

Sorting by <W'q, W'x> maximizes F; the signs of W'x are the codes. `svm` learns W from the most
violated rankings, which `violated_rankings` finds.

F is the same for W and for W R with any rotation R, but the signs are not. The paper uses the W of
its solver; ITQ's rotation brings W'x nearer to its signs and leaves F as it is.

What differs from the paper, besides: rows are scaled to a mean square of 1, so that λ and the
learning rate mean the same on any data; steps begin at a learning rate rather than at 1/λ and go on
from the last W, since the problem is not convex in W; a query is not in its own list; a kernel is
an option.

.. [1] Z. Yu, F. Wu, Y. Zhang, S. Tang, J. Shao and Y. Zhuang, "Hashing with list-wise learning to
   rank", SIGIR 2014.
"""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.errors import InputError
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import choice, fact, integer, number, parameter
from rankbits.methods.shallow.lwh.svm import Settings, learn_planes
from rankbits.methods.shallow.shared.kernel_hasher import KernelHasher
from rankbits.methods.shallow.shared.parameters import GAMMA, KERNEL, N_ANCHORS, N_QUERIES, ROTATION
from rankbits.methods.shallow.shared.principal import require_variation, root_mean_square, span_rows
from rankbits.methods.shallow.shared.ranking_lists import draw_lists
from rankbits.methods.shallow.shared.rotation import rotate_planes
from rankbits.methods.shallow.shared.violated_rankings import LOSSES
from rankbits.methods.supervision import Supervision, supervise

_START = 0.1  # |W| at the start, relative to the largest it may have; no gradient leaves W = 0


class LWH(KernelHasher):
    """List-wise supervised hashing: a structural SVM with the loss 1 - AP or 1 - NDCG [1]_.

    Minimizes λ/2 |W|² + ξ where, over all queries and all rankings y of their lists, the ideal
    ranking must score more than y by the loss of y, less ξ. Rows are centered, and scaled to a mean
    square of 1. The list of a query is all other rows.

    Parameters
    ----------
    loss : {"map", "ndcg"}, default="map"
        The loss of a ranking: 1 - AP, or 1 - NDCG with the discount 1 / log2(1 + rank).
    regularization : float, default=3e-4
        λ.
    epsilon : float, default=0.01
        Learning ends once the next cut needs at most this much more slack than those so far.
    max_cuts : int, default=50
        Largest number of cuts.
    n_steps : int, default=50
        Subgradient steps between two cuts.
    learning_rate : float, default=10.0
        Length of the first step.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows, or of their coordinates under the kernel.
    planes_ : ndarray of shape (n_features, n_bits)
        W, rotated, for rows that are not scaled.
    anchors_ : RbfAnchors or None
        The kernel's map from rows to coordinates.
    history_ : list of dict
        One entry for each turn: cuts, norm (λ/2 |W|²), slack (ξ on these cuts), violation (what ξ
        would be on all rankings), loss (of the most violated ranking) and objective (norm +
        violation).
    report_ : dict
        What y was, queries, cuts, whether learning ended by epsilon, and the least objective.

    References
    ----------
    .. [1] Z. Yu, F. Wu, Y. Zhang, S. Tang, J. Shao and Y. Zhuang, "Hashing with list-wise learning
       to rank", SIGIR 2014.

    Examples
    --------
    >>> x = np.array([[0.0, 1.0], [0.1, 2.0], [3.0, 1.1], [3.1, 2.1]])
    >>> codes = LWH(n_bits=4, random_state=0).fit(x, [0, 0, 1, 1]).transform(x)
    >>> codes[0] == codes[1], codes[1] == codes[2], codes[2] == codes[3]
    (array([ True]), array([False]), array([ True]))
    """

    loss: str = parameter("map", choice(*LOSSES))
    n_queries: int = N_QUERIES
    regularization: float = parameter(3e-4, number(closed=False))
    epsilon: float = parameter(0.01, number(closed=False))
    max_cuts: int = parameter(50, integer(1))
    n_steps: int = parameter(50, integer(1))
    learning_rate: float = parameter(10.0, number(closed=False))
    rotation: str | None = ROTATION
    kernel: str | None = KERNEL
    n_anchors: int = N_ANCHORS
    gamma: float | None = GAMMA
    random_state: Seed = RANDOM_STATE

    _requires_y: ClassVar[bool] = True

    history_: list[dict[str, Any]] = fact(list)
    report_: dict[str, Any] = fact(dict)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the hyperplanes.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,), multi-hot (n, L), or an affinity over (X, X)
            Rows with a level above 0 are relevant; no row is in its own list.
        """
        rows = self._training_rows(X, y)
        supervision = _supervise(rows, y)
        rng = check_random_state(self.random_state)
        rows = self._draw_anchors(rows, rng)
        self.mean_ = rows.mean(axis=0)
        rows = rows - self.mean_
        require_variation(rows)
        scale = root_mean_square(rows)
        parts, basis = span_rows(rows / scale)
        queries, lists = draw_lists(supervision, self.n_queries, rng)
        start = _draw_planes(parts.shape[1], self.n_bits, self.regularization, rng)
        planes, self.history_ = learn_planes(parts, parts[queries], lists, start, self._settings())
        if self.rotation is not None:
            planes = rotate_planes(parts, planes)
        self.planes_ = basis @ planes / scale
        self.report_ = self._write_report(supervision, len(lists))
        return self

    def _settings(self) -> Settings:
        stops = self.epsilon, self.max_cuts, self.n_steps
        return Settings(self.loss, self.regularization, *stops, self.learning_rate)

    def _write_report(self, supervision: Supervision, n_queries: int) -> dict[str, Any]:
        last = self.history_[-1]
        return {
            "supervision": supervision.notes(),
            "queries": n_queries,
            "cuts": last["cuts"],
            "converged": last["violation"] <= last["slack"] + self.epsilon,
            "objective": min(turn["objective"] for turn in self.history_),
        }


def _supervise(rows: np.ndarray, y: Any) -> Supervision:
    """What y says about the rows; None, or a single row, is refused."""
    if y is None:
        raise InputError(
            "y must be class labels, multi-hot tags or an affinity over (X, X): lwh requires y "
            "to be passed, but the target y is None; rsh, talr-ap and talr-ndcg work without y"
        )
    if len(rows) < 2:
        raise InputError("X must have at least two rows to rank, got n_samples = 1")
    return supervise(rows, y)


def _draw_planes(
    n_features: int, n_bits: int, regularization: float, rng: np.random.RandomState
) -> np.ndarray:
    """The first W: random, of a fixed share of the largest norm that it may have."""
    planes = rng.standard_normal((n_features, n_bits))
    planes *= _START * np.sqrt(2.0 / regularization) / np.linalg.norm(planes)
    return planes
