"""A structural SVM of rankings over inner products of projected rows, by cutting planes.

Row x is scored for query q by s = <W'q, W'x>. With ΔΨ the feature of a ranking taken from that of
the ideal ranking, averaged over the queries, and Δ its mean loss, the 1-slack problem is [1]_

    minimize  λ/2 |W|² + ξ   such that   <W W', ΔΨ(y)> >= Δ(y) - ξ   for all rankings y

Cuts are the constraints met so far. In turns, W is fitted to the cuts, and the most violated
ranking of all queries becomes the next cut, until its violation is at most ξ + epsilon. The problem
is not convex in W, which enters as W W': subgradient steps like those of Pegasos [2]_ continue from
the last W, and the best W on the way becomes the W of the turn; the result is the best W of all
turns. A turn that did not lower the objective shortens the steps of the next ones.

.. [1] T. Joachims, T. Finley and C.-N. J. Yu, "Cutting-plane training of structural SVMs", Machine
   Learning 77, 2009.
.. [2] S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, "Pegasos: primal estimated
   sub-gradient solver for SVM", Mathematical Programming 127, 2011.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rankbits.methods.shallow.shared.ranking_lists import RankingLists
from rankbits.methods.shallow.shared.violated_rankings import most_violated

_SHORTER = 0.85  # factor of the learning rate after a turn that did not lower the objective


@dataclass(frozen=True)
class Settings:
    """How to learn: the loss, λ, when to stop, and the steps between two cuts."""

    loss: str
    regularization: float
    epsilon: float
    max_cuts: int
    n_steps: int
    learning_rate: float


@dataclass(frozen=True)
class Turn:
    """One turn: W as fitted to the cuts so far, and its most violated ranking.

    Attributes
    ----------
    cuts : int
        Cuts that W was fitted to.
    norm : float
        λ/2 |W|².
    slack : float
        ξ on those cuts.
    violation : float
        Δ - <W W', ΔΨ> of the most violated ranking: what ξ would be on all rankings.
    loss : float
        Δ of that ranking.
    """

    cuts: int
    norm: float
    slack: float
    violation: float
    loss: float

    @property
    def objective(self) -> float:
        """λ/2 |W|² + ξ over all rankings."""
        return self.norm + max(self.violation, 0.0)


class WorkingSet:
    """The cuts so far: ΔΨ, made symmetric since W W' is, and Δ of each.

    Single precision is enough: a slack is only compared with others and with epsilon, and the time
    of a step is spent on reading the cuts from memory.
    """

    def __init__(self, max_cuts: int, n_features: int) -> None:
        self._features = np.empty((max_cuts, n_features * n_features), np.float32)
        self._losses = np.empty(max_cuts, np.float32)
        self.size, self.n_features = 0, n_features

    def add(self, feature: np.ndarray, loss: float) -> None:
        """Append one more cut."""
        self._features[self.size] = feature.ravel()
        self._losses[self.size] = loss
        self.size += 1

    def most_slack(self, planes: np.ndarray) -> tuple[float, np.ndarray | None]:
        """ξ of W, and the ΔΨ of the cut that needs it; 0 and None if no cut needs slack."""
        if not self.size:
            return 0.0, None
        margins = self._features[: self.size] @ (planes @ planes.T).ravel()
        slacks = self._losses[: self.size] - margins
        worst = int(slacks.argmax())
        if slacks[worst] <= 0:
            return 0.0, None
        feature = self._features[worst].reshape(self.n_features, self.n_features)
        return float(slacks[worst]), feature


def learn_planes(
    rows: np.ndarray,
    queries: np.ndarray,
    lists: RankingLists,
    start: np.ndarray,
    settings: Settings,
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """W of the least objective, shape (features, bits), and the record of all turns.

    `queries` has one row for each list; `start` is the first W, which must not be 0, where the
    gradient vanishes.
    """
    cuts, planes, turns = WorkingSet(settings.max_cuts, rows.shape[1]), start, []
    best, least = start, np.inf
    while True:
        slack, _ = cuts.most_slack(planes.astype(np.float32))
        feature, loss = _most_violated_feature(rows, queries, lists, planes, settings.loss)
        violation = loss - float((feature * (planes @ planes.T)).sum())
        turn = Turn(cuts.size, _norm(planes, settings), slack, violation, loss)
        turns.append({**asdict(turn), "objective": turn.objective})
        if turn.objective < least:
            best, least = planes, turn.objective
        else:
            settings = replace(settings, learning_rate=_SHORTER * settings.learning_rate)
        if violation <= slack + settings.epsilon or cuts.size == settings.max_cuts:
            return best, turns
        cuts.add(feature, loss)
        planes = fit_to_cuts(cuts, planes, settings)


def fit_to_cuts(cuts: WorkingSet, start: np.ndarray, settings: Settings) -> np.ndarray:
    """The best W of `n_steps` steps W - η (λ W - 2 ΔΨ W), ΔΨ of the cut that needs most slack.

    η falls as r / (1 + λ r t), which is Pegasos' 1 / (λ t) started at the learning rate r.
    W stays within |W|² <= 2/λ, where the optimum lies since W = 0 has the objective Δ <= 1.
    """
    weight = settings.regularization
    radius = np.sqrt(2.0 / weight)
    planes = best = start.astype(np.float32)
    least = np.inf
    for step in range(settings.n_steps + 1):
        slack, feature = cuts.most_slack(planes)
        objective = _norm(planes, settings) + slack
        if objective < least:
            best, least = planes, objective
        rate = settings.learning_rate / (1.0 + weight * settings.learning_rate * step)
        moved = np.float32(1.0 - rate * weight) * planes
        if feature is not None:
            moved += np.float32(2.0 * rate) * (feature @ planes)
        planes = moved * np.float32(min(1.0, radius / max(np.linalg.norm(moved), 1e-30)))
    return best.astype(np.float64)


def _most_violated_feature(
    rows: np.ndarray, queries: np.ndarray, lists: RankingLists, planes: np.ndarray, loss: str
) -> tuple[np.ndarray, float]:
    """The symmetric part of ΔΨ, and Δ, of the most violated ranking of all queries."""
    scores = (queries @ planes) @ (rows @ planes).T
    violation = most_violated(scores, lists, loss)
    feature = queries.T @ (violation.weights @ rows) / len(lists)
    return (feature + feature.T) / 2.0, float(violation.losses.mean())


def _norm(planes: np.ndarray, settings: Settings) -> float:
    return settings.regularization / 2.0 * float(np.square(planes).sum())
