"""SDH: codes from which a linear classifier can tell the classes, learned as bits.

    minimize  |Y - B W|² + λ |W|² + ν (|B - F P|² + δ |P|²)    over B of -1 and +1, W and P

Y (n, L) has a 1 for each class or tag of a row, B (n, b) are the codes of the training rows, and
F (n, m) their kernel features; a new row has the code sign(k(x) P). Each part has a closed form if
the others are given: W and P by ridge regression, B bit by bit (`bitwise`), with M = W W' and
Q = Y W' + ν F P. So no step raises the loss.

What differs from the paper: P is a ridge regression, because anchors that nearly repeat have no
least squares; its penalty is part of the loss, which therefore never rises either. Tags are taken
as targets like classes. The rounds end once no bit changes.

F. Shen, C. Shen, W. Liu, H. T. Shen, "Supervised discrete hashing", CVPR 2015.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import solve
from sklearn.utils import check_random_state

from rankbits.errors import InputError
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import integer, learned, number, parameter
from rankbits.methods.shallow.shared.bitwise import descend_bits, signs_of
from rankbits.methods.shallow.shared.kernel_hasher import KernelHasher
from rankbits.methods.shallow.shared.pair_sampling import supervise_pairs
from rankbits.methods.shallow.shared.parameters import GAMMA, N_ANCHORS

_MAX_CYCLES = 20


class SDH(KernelHasher):
    """Supervised discrete hashing: bits from which a linear classifier tells the classes [1]_.

    The bits of the training rows, the classifier and the kernel map to the bits are learned in
    turns. The bits are never relaxed to real numbers: one after another they take their best sign.
    The paper takes 1,000 anchors, which encode more slowly.

    Parameters
    ----------
    classifier_penalty : float, default=1.0
        λ, the ridge of the classifier. It must be positive.
    map_weight : float, default=1e-5
        ν, the weight of what the kernel map misses of the bits. It must be positive.
    map_penalty : float, default=1e-5
        The ridge of the kernel map: δ in units of the mean square of a feature over the rows. It
        must be positive.
    max_rounds : int, default=20
        Largest number of turns through all parts; they end sooner once no bit changes.

    Attributes
    ----------
    mean_ : ndarray of shape (n_anchors,)
        Zeros: the kernel features are not centered.
    planes_ : ndarray of shape (n_anchors, n_bits)
        P, the normals of the hyperplanes.
    classifier_ : ndarray of shape (n_bits, n_classes)
        W.
    anchors_ : RbfAnchors
        The map from rows to kernel features.
    losses_ : ndarray of shape (steps,)
        The loss of the first B, W and P, then after each B, W and P; it never rises.

    References
    ----------
    .. [1] F. Shen, C. Shen, W. Liu, H. T. Shen, "Supervised discrete hashing", CVPR 2015.

    Examples
    --------
    >>> from rankbits.datasets import digits
    >>> data = digits()
    >>> hasher = SDH(16, random_state=0).fit(data.database_x, data.database_y)
    >>> hasher.encode(data.query_x)
    BinaryCodes(n=297, n_bits=16)
    """

    n_anchors: int = N_ANCHORS
    gamma: float | None = GAMMA
    classifier_penalty: float = parameter(1.0, number(closed=False))
    map_weight: float = parameter(1e-5, number(closed=False))
    map_penalty: float = parameter(1e-5, number(closed=False))
    max_rounds: int = parameter(20, integer(1))
    random_state: Seed = RANDOM_STATE

    _is_orthonormal: ClassVar[bool] = False
    _requires_y: ClassVar[bool] = True

    classifier_: np.ndarray = learned("b", "classes")
    losses_: np.ndarray = learned("steps")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn bits, classifier and kernel map in turns.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,) or multi-hot tags (n, L)
        """
        penalties = self.classifier_penalty, self.map_weight, self.map_penalty
        rng = check_random_state(self.random_state)
        rows = self._training_rows(X, y)
        targets = _read_targets(rows, y)
        features = self._draw_anchors(rows, rng)
        problem = Problem(targets, features, *penalties)
        bits = signs_of(rng.standard_normal((len(rows), self.n_bits)))
        learned_parts = solve_in_turns(problem, bits, self.max_rounds)
        self.classifier_, self.planes_, self.losses_ = learned_parts
        self.mean_ = np.zeros(features.shape[1])
        return self


@dataclass(frozen=True, eq=False)
class Problem:
    """The loss and the closed forms of its parts.

    Attributes
    ----------
    targets : ndarray of shape (n, L)
        Y.
    features : ndarray of shape (n, m)
        F.
    classifier_penalty, map_weight, map_penalty : float
        λ, ν, and δ in units of the mean square of a feature.
    """

    targets: np.ndarray
    features: np.ndarray
    classifier_penalty: float
    map_weight: float
    map_penalty: float

    @property
    def ridge(self) -> float:
        """δ, for the sum over all rows."""
        return self.map_penalty * _square(self.features) / float(self.features.shape[1])

    def solve_classifier(self, bits: np.ndarray) -> np.ndarray:
        """The best W for these bits."""
        return _ridge(bits, self.targets, self.classifier_penalty)

    def solve_map(self, bits: np.ndarray) -> np.ndarray:
        """The best P for these bits."""
        return _ridge(self.features, bits, self.ridge)

    def solve_bits(self, bits: np.ndarray, W: np.ndarray, P: np.ndarray) -> np.ndarray:
        """Bits that are no worse for this W and P, and that no change of one bit improves."""
        pull = self.targets @ W.T + self.map_weight * (self.features @ P)
        return descend_bits(bits, W @ W.T, pull, _MAX_CYCLES)

    def loss(self, bits: np.ndarray, W: np.ndarray, P: np.ndarray) -> float:
        """|Y - B W|² + λ |W|² + ν (|B - F P|² + δ |P|²)."""
        of_classes = _square(self.targets - bits @ W) + self.classifier_penalty * _square(W)
        of_map = _square(bits - self.features @ P) + self.ridge * _square(P)
        return of_classes + self.map_weight * of_map


def solve_in_turns(
    problem: Problem, bits: np.ndarray, max_rounds: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W, P and the losses on the way, from first bits; W and P are those of the last bits."""
    W, P = problem.solve_classifier(bits), problem.solve_map(bits)
    losses = [problem.loss(bits, W, P)]
    for _ in range(max_rounds):
        bits_before, bits = bits, problem.solve_bits(bits, W, P)
        losses.append(problem.loss(bits, W, P))
        if np.array_equal(bits_before, bits):
            break
        W = problem.solve_classifier(bits)
        losses.append(problem.loss(bits, W, P))
        P = problem.solve_map(bits)
        losses.append(problem.loss(bits, W, P))
    return W, P, np.array(losses)


def _read_targets(rows: np.ndarray, y: Any) -> np.ndarray:
    """Y (n, L) of 0 and 1; whatever has no classes or tags is refused."""
    if y is None:
        raise InputError(
            "y must be class labels or multi-hot tags: sdh requires y to be passed, but the target "
            "y is None; ksh, bre and mlh work without y"
        )
    supervision = supervise_pairs(rows, y)
    if supervision.classes is not None:
        memberships: np.ndarray = np.eye(int(supervision.classes.max()) + 1)[supervision.classes]
        return memberships
    if supervision.tags is None:
        raise InputError(
            "y must be class labels or multi-hot tags for sdh, which learns a classifier, got an "
            "affinity; ksh, bre and mlh learn from pairs"
        )
    return supervision.tags.astype(np.float64)


def _ridge(inputs: np.ndarray, outputs: np.ndarray, penalty: float) -> np.ndarray:
    """The matrix A with the least |outputs - inputs A|² + penalty |A|²."""
    gram = inputs.T @ inputs
    gram[np.diag_indices_from(gram)] += penalty
    coefficients: np.ndarray = solve(gram, inputs.T @ outputs, assume_a="pos")
    return coefficients


def _square(array: np.ndarray) -> float:
    return float(np.sum(array**2))
