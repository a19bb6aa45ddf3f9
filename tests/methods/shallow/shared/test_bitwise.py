"""Bitwise descent takes the cheaper sign of each bit, and ends where no bit can improve."""

import numpy as np
import pytest

from oracles import sdh as oracle
from rankbits.methods.shallow.shared.bitwise import descend_bits


def value(bits, matrix, targets):
    return np.trace(bits @ matrix @ bits.T) - 2 * np.trace(bits @ targets.T)


@pytest.fixture
def problem(rng):
    half = rng.standard_normal((6, 4))
    bits = np.where(rng.standard_normal((25, 6)) > 0, 1.0, -1.0)
    return bits, half @ half.T, 2 * rng.standard_normal((25, 6))


def test_a_cycle_is_that_of_the_plain_way(problem):
    bits, matrix, targets = problem
    one = descend_bits(bits, matrix, targets, 1)
    assert np.array_equal(one, oracle.cycle(bits, matrix, targets))
    two = descend_bits(bits, matrix, targets, 2)
    assert np.array_equal(two, oracle.cycle(one, matrix, targets))
    assert not np.array_equal(one, two)


def test_no_cycle_raises_the_value_and_at_the_end_no_bit_can_lower_it(problem):
    bits, matrix, targets = problem
    values = [value(descend_bits(bits, matrix, targets, n), matrix, targets) for n in range(30)]
    assert all(np.diff(values) <= 1e-9)
    assert values[1] < values[0]
    end = descend_bits(bits, matrix, targets, 30)
    for i in range(25):
        for k in range(6):
            flipped = end.copy()
            flipped[i, k] *= -1
            assert value(flipped, matrix, targets) >= values[-1] - 1e-9


def test_the_sign_of_zero_is_1_and_the_first_bits_stay_as_they_were():
    bits = -np.ones((2, 3))
    assert np.array_equal(
        descend_bits(bits, np.zeros((3, 3)), np.zeros((2, 3)), 5), np.ones((2, 3))
    )
    assert np.array_equal(bits, -np.ones((2, 3)))
