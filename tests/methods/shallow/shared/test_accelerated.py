"""Accelerated descent reaches minima that are known, and never climbs."""

from itertools import pairwise

import numpy as np
import pytest

from rankbits.methods.shallow.shared.accelerated import minimize_accelerated


class Recorded:
    """A function given by its value and gradient, which notes the values at the points it is at."""

    def __init__(self, value, gradient):
        self.value, self.gradient, self.n_calls = value, gradient, 0

    def at(self, point):
        self.n_calls += 1
        return self.value(point), self.gradient(point)


def quadratic(scales):
    return Recorded(lambda x: float(scales @ (x - 1) ** 2), lambda x: 2 * scales * (x - 1))


def test_a_stretched_bowl_is_solved_in_fewer_steps_than_plain_descent_takes():
    scales = np.geomspace(1, 1000, 20)
    function = quadratic(scales)
    point = minimize_accelerated(function, np.zeros(20), 2000, 1e-12)
    np.testing.assert_allclose(point, 1, atol=1e-4)
    plain, steps = np.zeros(20), 0
    while np.abs(plain - 1).max() > 1e-4:
        plain, steps = plain - function.gradient(plain) / 2000, steps + 1
    assert function.n_calls < steps / 4


def test_a_function_that_is_not_convex_never_rises():
    def value(x):
        return float(np.sum(np.cos(3 * x) + 0.1 * x**2))

    def gradient(x):
        return -3 * np.sin(3 * x) + 0.2 * x

    start = np.random.default_rng(0).standard_normal(10)
    values = [
        value(minimize_accelerated(Recorded(value, gradient), start, steps, 0.0))
        for steps in range(30)
    ]
    assert values[0] == value(start)
    assert all(after <= before for before, after in pairwise(values))
    end = minimize_accelerated(Recorded(value, gradient), start, 500, 0.0)
    np.testing.assert_allclose(gradient(end), 0, atol=1e-5)


def test_it_stays_where_there_is_no_slope():
    function = quadratic(np.ones(3))
    assert minimize_accelerated(function, np.ones(3), 10, 0.0) == pytest.approx(np.ones(3))
    assert function.n_calls == 1
