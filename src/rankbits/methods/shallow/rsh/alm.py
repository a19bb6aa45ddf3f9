"""The augmented Lagrangian method (ALM) of RSH's paper: Algorithm 1, for tr(A'SA) under A'A = I.

    F(A, L) = -tr(A'SA) + tr(L (A'A - I)) + rho/2 |A'A - I|^2

is lowered over A by gradient descent, then the multipliers L grow by rho (A'A - I), in rounds. The
first round, L = 0, approximates I + S/rho by A A': all its local minima are global, so a random
start is enough. Multiplied by an orthogonal matrix from the right, A is as good as before: which of
these matrices is the result depends on the start.

For the same reason the rounds may never end with a fixed rho: with multipliers of eigenvalues
l_1 >= ... >= l_b, the F of columns that pair the largest eigenvalue of S with the smallest
multiplier is lower by (l_1 - l_b)^2 / rho than at the solution, and the pairs swap in every round.
So rho is doubled whenever |A'A - I| has not halved, as is usual with this method (Bertsekas,
"Constrained optimization and Lagrange multiplier methods", 1982).

J. Wang, W. Liu, A. X. Sun, Y.-G. Jiang, "Learning hash codes with listwise supervision", ICCV 2013.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_ROUNDS = 60
MAX_STEPS = 200
_CLOSE = 1e-4  # of A'A to I
_STILL = 1e-6  # a relative change of the objective that ends the rounds
_PROMISE = 1e-8  # a fall of F that ends a descent
_MEMORY = 10
_LEAST_STEP = 1e-12
_ENOUGH = 1e-4  # Armijo's share of the promised fall


def maximize_by_alm(
    matrix: np.ndarray, n_bits: int, rng: np.random.RandomState
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """A of shape (D, b) with A'A = I that maximizes tr(A'SA), and the rounds on the way to it.

    A round is a dict: `objective` tr(A'SA), `violation` |A'A - I|, `steps` of descent, `rho`. The
    result is the matrix with orthonormal columns that is nearest to the last A.
    """
    norm = float(np.linalg.norm(matrix)) or 1.0
    problem = _Lagrangian(matrix / norm, np.zeros((n_bits, n_bits)))
    A = np.linalg.qr(rng.standard_normal((len(matrix), n_bits)))[0]
    rounds, last_objective, violation = list[dict[str, Any]](), np.inf, np.inf
    for _ in range(MAX_ROUNDS):
        A, n_steps = _descend(problem, A)
        excess, last_violation = A.T @ A - np.eye(n_bits), violation
        objective, violation = problem.objective(A), float(np.linalg.norm(excess))
        rounds.append(
            {
                "objective": objective * norm,
                "violation": violation,
                "steps": n_steps,
                "rho": problem.rho,
            }
        )
        if violation < _CLOSE and abs(objective - last_objective) <= _STILL * abs(objective):
            break
        problem.raise_multipliers(excess, is_slow=violation > last_violation / 2)
        last_objective = objective
    left, _, right = np.linalg.svd(A, full_matrices=False)
    return left @ right, rounds


@dataclass
class _Lagrangian:
    """F for one L and rho; S and L are symmetric, S of norm 1."""

    S: np.ndarray
    L: np.ndarray
    rho: float = 1.0  # not below the norm of S: I + S/rho must be positive

    def objective(self, A: np.ndarray) -> float:
        """tr(A'SA)."""
        return float(np.sum(A * (self.S @ A)))

    def raise_multipliers(self, excess: np.ndarray, is_slow: bool) -> None:
        """The step of the multipliers, and a larger rho if the last round achieved little."""
        self.L = self.L + self.rho * excess
        self.rho *= 2 if is_slow else 1

    def at(self, A: np.ndarray) -> tuple[float, np.ndarray]:
        """F and its gradient -2SA + 2AL + 2 rho A(A'A - I)."""
        mapped, excess = self.S @ A, A.T @ A - np.eye(A.shape[1])
        penalty = np.sum(self.L * excess) + self.rho / 2 * np.sum(excess**2)
        gradient = 2.0 * (A @ (self.L + self.rho * excess) - mapped)
        return float(penalty - np.sum(A * mapped)), gradient


def _descend(problem: _Lagrangian, A: np.ndarray) -> tuple[np.ndarray, int]:
    """Gradient descent on F(., L): step sizes by Barzilai and Borwein, halved until F falls.

    F must fall below the highest of its last ten values, not below the last one: steps of this kind
    are fast because they may climb now and then (Grippo, Lampariello & Lucidi, SIAM J. Numer. Anal.
    1986). The descent ends once a step promises too little, or after MAX_STEPS.
    """
    (value, gradient), size = problem.at(A), 0.1 / problem.rho
    recent = deque([value], maxlen=_MEMORY)
    for step in range(MAX_STEPS):
        slope = float(np.sum(gradient**2))
        if size * slope <= _PROMISE or size <= _LEAST_STEP:
            return A, step
        moved = A - size * gradient
        new_value, new_gradient = problem.at(moved)
        while new_value > max(recent) - _ENOUGH * size * slope and size > _LEAST_STEP:
            size /= 2
            moved = A - size * gradient
            new_value, new_gradient = problem.at(moved)
        change, bend = moved - A, new_gradient - gradient
        curvature = float(np.sum(change * bend))
        size = float(np.sum(change**2)) / curvature if curvature > 0 else 2 * size
        A, gradient = moved, new_gradient
        recent.append(new_value)
    return A, MAX_STEPS
