"""Conjugate gradients: a few steps towards the solution of a symmetric linear system.

M. Hestenes, E. Stiefel, "Methods of conjugate gradients for solving linear systems", 1952.
"""

from collections.abc import Callable

import numpy as np


def conjugate_gradients(
    apply: Callable[[np.ndarray], np.ndarray], target: np.ndarray, start: np.ndarray, n_steps: int
) -> np.ndarray:
    """The start after so many steps towards the solution of apply(x) = target."""
    solution = start
    residual = target - apply(solution)
    direction, square = residual, float(np.vdot(residual, residual))
    for _ in range(n_steps):
        if square == 0:
            break
        image = apply(direction)
        step = square / float(np.vdot(direction, image))
        solution = solution + step * direction
        residual = residual - step * image
        last, square = square, float(np.vdot(residual, residual))
        direction = residual + square / last * direction
    return solution
