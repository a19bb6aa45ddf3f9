"""Rows drawn to the groups that they resemble."""

import numpy as np
import pytest

from rankbits.methods.shallow.shared.smoothing import Smoothing, learn_smoothing


def smooth_row(row, centers, temperature):
    """The definition, number by number."""
    chances = [
        np.exp(sum(a * b for a, b in zip(row, c, strict=True)) / temperature) for c in centers
    ]
    total = sum(p * c for p, c in zip(chances, centers, strict=True))
    mixed = 0.7 * total / np.sqrt(sum(total**2)) + 0.3 * row
    return mixed / np.sqrt(sum(mixed**2))


@pytest.fixture
def units(rng):
    rows = rng.standard_normal((60, 5))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("temperature", [0.05, 0.3, 10.0])
def test_rows_are_drawn_to_groups_as_defined(units, temperature):
    smoothing = Smoothing(units[:7], temperature)
    expected = [smooth_row(row, units[:7], temperature) for row in units]
    np.testing.assert_allclose(smoothing.apply(units), expected, atol=1e-12)


def test_the_temperature_is_half_the_deviation_of_cosines_and_centers_have_length_1(units, rng):
    smoothing = learn_smoothing(units, 6, np.random.RandomState(0))
    np.testing.assert_allclose(np.linalg.norm(smoothing.centers, axis=1), 1)
    assert smoothing.temperature == pytest.approx((units @ smoothing.centers.T).std() / 2)


def test_where_rows_are_fewer_than_groups_each_is_a_center():
    smoothing = learn_smoothing(np.eye(3), 10, np.random.RandomState(0))
    assert sorted(smoothing.centers.tolist()) == sorted(np.eye(3).tolist())


def test_a_row_of_zeros_stays_and_is_no_center():
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    smoothing = learn_smoothing(rows, 10, np.random.RandomState(0))
    assert len(smoothing.centers) == 2
    assert smoothing.apply(rows)[0].tolist() == [0.0, 0.0]
