"""RBF anchors: features and coordinates are what the kernel says, with one rule for its width."""

import numpy as np
import pytest

from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods.shallow.shared.kernels import draw_anchors, median_gamma, rbf


def squared_distances(x, y):
    return np.square(x[:, None] - y).sum(axis=2)


def test_features_are_the_kernel_of_every_row_and_anchor(rng):
    rows = rng.standard_normal((40, 3))
    anchors = draw_anchors(rows, 15, 0.4, np.random.RandomState(0))
    expected = np.exp(-0.4 * squared_distances(rows, anchors.rows))
    assert anchors.n_columns == 15
    np.testing.assert_allclose(anchors(rows), expected, atol=1e-12)
    np.testing.assert_allclose(rbf(rows, anchors.rows, 0.4), expected, atol=1e-12)


def test_anchors_are_different_rows(rng):
    rows = rng.standard_normal((40, 3))
    anchors = {tuple(row) for row in draw_anchors(rows, 15, 0.4, np.random.RandomState(0)).rows}
    assert len(anchors) == 15
    assert anchors <= {tuple(row) for row in rows}
    assert len(draw_anchors(rows, 500, 0.4, np.random.RandomState(0)).rows) == 40


def test_orthonormal_coordinates_of_anchors_have_the_kernel_as_inner_product(rng):
    rows = rng.standard_normal((40, 3))
    anchors = draw_anchors(rows, 15, 0.4, np.random.RandomState(0)).orthonormalize()
    products = anchors(anchors.rows) @ anchors(rows).T
    expected = np.exp(-0.4 * squared_distances(anchors.rows, rows))
    np.testing.assert_allclose(products, expected, atol=1e-6)


def test_equal_rows_leave_no_coordinate_of_rounding_errors(rng):
    rows = np.repeat(rng.standard_normal((7, 3)), 5, axis=0)
    anchors = draw_anchors(rows, 35, None, np.random.RandomState(0)).orthonormalize()
    assert anchors.basis.shape == (35, 7)
    assert anchors.n_columns == 7


def test_without_gamma_it_is_1_over_the_median_squared_distance(rng):
    rows = rng.standard_normal((60, 3))
    gamma = draw_anchors(rows, 60, None, np.random.RandomState(0)).gamma
    squares = squared_distances(rows, rows)
    assert gamma == pytest.approx(1 / np.median(squares[~np.eye(60, dtype=bool)]), rel=1e-9)
    scaled = draw_anchors(10 * rows, 60, None, np.random.RandomState(0)).gamma
    assert scaled == pytest.approx(gamma / 100)
    assert gamma == median_gamma(rows, rows, np.random.RandomState(1))


@pytest.mark.parametrize("name", ["rsh", "lwh"])
def test_gamma_means_the_same_in_every_method(name, rng):
    rows, y = rng.standard_normal((60, 4)), np.arange(60) % 3
    params = {"n_bits": 4, "kernel": "rbf", "n_anchors": 60, "random_state": 0}
    anchors = methods.get(name, **params).fit(rows, y).anchors_
    squares = squared_distances(rows, rows)
    assert anchors.gamma == pytest.approx(1 / np.median(squares[~np.eye(60, dtype=bool)]))
    chosen = methods.get(name, gamma=0.3, **params).fit(rows, y).anchors_
    products = chosen(rows[:1]) @ chosen(rows[1:2]).T
    assert products[0, 0] == pytest.approx(np.exp(-0.3 * squares[0, 1]), abs=1e-6)


def test_rows_that_are_all_equal_are_refused():
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        draw_anchors(np.ones((9, 3)), 5, None, np.random.RandomState(0))
