"""LWH: hyperplanes learned by a structural SVM of whole ranking lists [1]_.

    F(q, X, y) = <W W', Ψ(q, X, y)>,  Ψ = sum over relevant i, irrelevant j of y_ij q (x_i - x_j)',
                                      divided by the number of such pairs; y_ij is 1 or -1

Sorting by <W'q, W'x> maximises F; the signs of W'x are the codes. `_ranking_svm` learns W from the
most violated rankings, which `_violated` finds.

F is the same for W and for W R with any rotation R, but the signs are not. The paper takes W as its
solver leaves it; ITQ's rotation brings W'x nearer to its signs and changes no F.

.. [1] Z. Yu, F. Wu, Y. Zhang, S. Tang, J. Shao and Y. Zhuang, "Hashing with list-wise learning to
   rank", SIGIR 2014.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits import _check
from rankbits.errors import FileFormatError, InputError
from rankbits.methods._anchors import RbfAnchors, draw_anchors
from rankbits.methods._geometry import spanned, turned_to_signs
from rankbits.methods._linear import LinearHasher, require_arrays
from rankbits.methods._ranking_lists import draw_lists, two_levels
from rankbits.methods._ranking_svm import Settings, learn_planes
from rankbits.methods._supervision import Supervision
from rankbits.methods._violated import LOSSES

_START = 0.1  # |W| at first, of the largest it may have: 0 is a point that no gradient leaves
_TURNS = 50


class LWH(LinearHasher):
    """List-wise supervised hashing: a structural SVM with the loss 1 - AP or 1 - NDCG of a list.

    Minimises λ/2 |W|² + ξ where, over all queries and all rankings y of their lists, the ideal
    ranking must score more than y by the loss of y, less ξ. Rows are centred, and scaled to a mean
    square of 1. A query's list is all other rows.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length.
    loss : {"map", "ndcg"}, default="map"
        What a ranking loses: 1 - AP, or 1 - NDCG with the discount 1 / log2(1 + rank).
    n_queries : int, default=300
        Training rows that act as queries, drawn at random; all that have both relevant and
        irrelevant rows if there are no more.
    regularisation : float, default=3e-4
        λ.
    epsilon : float, default=0.01
        Learning ends once the next cut needs at most this much more slack than those so far.
    max_cuts : int, default=50
        Cuts at most.
    n_steps : int, default=50
        Subgradient steps between two cuts.
    learning_rate : float, default=10.0
        Length of the first step.
    rotation : {"itq"} or None, default="itq"
        Whether W is turned towards its signs; None is the paper's.
    kernel : {"rbf"} or None, default=None
        Learn hyperplanes in the span of RBF anchors instead of the space of the rows.
    n_anchors : int, default=300
    gamma : float or None, default=None
        Of the kernel exp(-gamma |x - a|²); None takes 1 over the median squared distance.
    random_state : int, RandomState or None, default=None
        Seed of anchors, queries and the first W.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows, or of their coordinates under the kernel.
    planes_ : ndarray of shape (n_features, n_bits)
        W, turned, for rows as they come.
    anchors_ : RbfAnchors or None
        The kernel's map from rows to coordinates.
    history_ : list of dict
        One for each turn: cuts, norm (λ/2 |W|²), slack (ξ on these cuts), violation (what ξ would
        be on all rankings), loss (of the most violated ranking) and objective (norm + violation).
    report_ : dict
        What y was, queries, cuts, whether learning ended by epsilon, and the least objective.

    >>> x = np.array([[0.0, 1.0], [0.1, 2.0], [3.0, 1.1], [3.1, 2.1]])
    >>> codes = LWH(n_bits=4, random_state=0).fit(x, [0, 0, 1, 1]).transform(x)
    >>> codes[0] == codes[1], codes[1] == codes[2], codes[2] == codes[3]
    (array([ True]), array([False]), array([ True]))
    """

    anchors_: RbfAnchors | None
    history_: list[dict[str, Any]]
    report_: dict[str, Any]

    def __init__(
        self,
        n_bits: int = 32,
        *,
        loss: str = "map",
        n_queries: int = 300,
        regularisation: float = 3e-4,
        epsilon: float = 0.01,
        max_cuts: int = 50,
        n_steps: int = 50,
        learning_rate: float = 10.0,
        rotation: str | None = "itq",
        kernel: str | None = None,
        n_anchors: int = 300,
        gamma: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.loss = loss
        self.n_queries = n_queries
        self.regularisation = regularisation
        self.epsilon = epsilon
        self.max_cuts = max_cuts
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.rotation = rotation
        self.kernel = kernel
        self.n_anchors = n_anchors
        self.gamma = gamma
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the hyperplanes.

        Parameters
        ----------
        X : array of shape (n, features)
        y : class labels (n,), multi-hot (n, L), or an affinity over (X, X)
            Whatever has a level above 0 is relevant; no row is in its own list.
        """
        how, n_bits = self._settings(), self._asked_bits()
        rows = self._training_rows(X)
        supervision = two_levels(rows, y)
        rng = check_random_state(self.random_state)
        self.anchors_ = self._drawn_anchors(rows, rng)
        rows = rows if self.anchors_ is None else self.anchors_(rows)
        self.mean_ = rows.mean(axis=0)
        rows = rows - self.mean_
        scale = _root_mean_square(rows)
        parts, basis = spanned(rows / scale)
        queries, lists = draw_lists(supervision, self.n_queries, rng)
        start = _first_planes(parts.shape[1], n_bits, how.regularisation, rng)
        planes, self.history_ = learn_planes(parts, parts[queries], lists, start, how)
        if self.rotation is not None:
            planes = turned_to_signs(parts, planes, _TURNS)
        self.planes_ = basis @ planes / scale
        self.report_ = self._reported(supervision, len(lists))
        return self

    def _settings(self) -> Settings:
        """The parameters of learning, checked."""
        if self.rotation is not None:
            _check.choice("rotation", self.rotation, ("itq",))
        if self.kernel is not None:
            _check.choice("kernel", self.kernel, ("rbf",))
        _check.whole("n_queries", self.n_queries, 1)
        return Settings(
            _check.choice("loss", self.loss, LOSSES),
            _check.number("regularisation", self.regularisation, closed=False),
            _check.number("epsilon", self.epsilon, closed=False),
            _check.whole("max_cuts", self.max_cuts, 1),
            _check.whole("n_steps", self.n_steps, 1),
            _check.number("learning_rate", self.learning_rate, closed=False),
        )

    def _drawn_anchors(self, rows: np.ndarray, rng: np.random.RandomState) -> RbfAnchors | None:
        if self.kernel is None:
            return None
        return draw_anchors(rows, self.n_anchors, self.gamma, rng)

    def _reported(self, supervision: Supervision, n_queries: int) -> dict[str, Any]:
        last = self.history_[-1]
        return {
            "supervision": supervision.notes(),
            "queries": n_queries,
            "cuts": last["cuts"],
            "converged": last["violation"] <= last["slack"] + self.epsilon,
            "objective": min(turn["objective"] for turn in self.history_),
        }

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        return super()._logits(rows if self.anchors_ is None else self.anchors_(rows))

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, facts = super()._state()
        facts = {"history": self.history_, "report": self.report_}
        if self.anchors_ is not None:
            arrays |= {"anchors": self.anchors_.rows, "basis": self.anchors_.basis}
            facts["gamma"] = self.anchors_.gamma
        return arrays, facts

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        shapes: dict[str, tuple[str, ...]] = {"mean": ("d",), "planes": ("d", "b")}
        sizes = {"d": self.n_features_in_}
        wanted: dict[str, type] = {"history": list, "report": dict}
        if self.kernel is not None:
            shapes = {"mean": ("r",), "planes": ("r", "b"), "anchors": ("m", "d")}
            shapes["basis"] = ("m", "r")
            wanted["gamma"] = float
        require_arrays(arrays, {}, shapes, sizes)
        if {name: type(fact) for name, fact in facts.items()} != wanted:
            raise FileFormatError(
                f"the model's facts must be {', '.join(wanted)}, got {facts!r:.60}"
            )
        self.mean_, self.planes_ = arrays["mean"], arrays["planes"]
        self.history_, self.report_ = facts["history"], facts["report"]
        self.anchors_ = None
        if self.kernel is not None:
            self.anchors_ = RbfAnchors(arrays["anchors"], arrays["basis"], facts["gamma"])

    def _torch_module(self) -> Any:
        linear = super()._torch_module()
        if self.anchors_ is None:
            return linear
        from torch import nn

        from rankbits.methods._anchors_onnx import AnchorCoordinates

        return nn.Sequential(AnchorCoordinates(self.anchors_), linear)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _first_planes(
    n_features: int, n_bits: int, regularisation: float, rng: np.random.RandomState
) -> np.ndarray:
    planes = rng.standard_normal((n_features, n_bits))
    planes *= _START * np.sqrt(2.0 / regularisation) / np.linalg.norm(planes)
    return planes


def _root_mean_square(rows: np.ndarray) -> float:
    """Of the lengths of centred rows."""
    if (rows == rows[0]).all():
        raise InputError("X must vary, all its rows are equal; no direction tells them apart")
    return float(np.linalg.norm(rows) / np.sqrt(len(rows)))
