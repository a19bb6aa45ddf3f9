"""Accelerated gradient descent with step sizes of its own.

Nesterov's method (Y. Nesterov, "A method of solving a convex programming problem with convergence
rate O(1/k²)", Soviet Mathematics Doklady 27, 1983) steps from a point ahead of the last one, along
the direction of the last step. The step is 1 / L, where L doubles until the function falls by as
much as the gradient promises, and shrinks slowly otherwise. Where the function rises, the momentum
is dropped (B. O'Donoghue and E. Candès, "Adaptive restart for accelerated gradient schemes", 2015),
so that the values never rise, whether or not the function is convex.
"""

from typing import Protocol

import numpy as np

_LARGEST_L = 1e15
_EASE = 0.9  # factor of L after a step that was accepted


class SmoothFunction(Protocol):
    """A function that has a gradient."""

    def value(self, point: np.ndarray) -> float:
        """The value at a point."""

    def at(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and the gradient at a point."""


def minimize_accelerated(
    function: SmoothFunction, start: np.ndarray, max_steps: int, tolerance: float
) -> np.ndarray:
    """The point after `max_steps` steps, or sooner.

    The steps end once one of them lowers the value by no more than this share of it, or none can.
    """
    point = ahead = start
    value, momentum, L = function.value(start), 1.0, 1.0
    for _ in range(max_steps):
        moved, moved_value, L = _step(function, ahead, L)
        if moved_value >= value:
            if momentum == 1.0:
                break
            ahead, momentum = point, 1.0
            continue
        fall, next_momentum = value - moved_value, (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / next_momentum * (moved - point)
        point, value, momentum, L = moved, moved_value, next_momentum, _EASE * L
        if fall <= tolerance * abs(value):
            break
    return point


def _step(function: SmoothFunction, point: np.ndarray, L: float) -> tuple[np.ndarray, float, float]:
    """One step of the length 1 / L that lowers the value enough; its end, value and L."""
    value, gradient = function.at(point)
    slope = float(np.sum(gradient**2))
    while True:
        moved = point - gradient / L
        moved_value = function.value(moved)
        if moved_value <= value - 0.5 * slope / L or L > _LARGEST_L:
            return moved, moved_value, L
        L *= 2
