"""ITQ's loop: from any start the loss falls, and planes of any shape score as before."""

import numpy as np
import pytest

from rankbits.methods.shallow.shared.rotation import learn_rotation, random_rotation, rotate_planes


def loss(rotated):
    return np.square(np.where(rotated > 0, 1.0, -1.0) - rotated).sum() / len(rotated)


def test_points_on_the_corners_of_a_cube_find_their_corners():
    rng = np.random.default_rng(0)
    corners = rng.choice([-1.0, 1.0], (400, 2))
    rotated = corners @ random_rotation(2, np.random.RandomState(3))
    rotation, losses = learn_rotation(rotated, np.eye(2), 100)
    np.testing.assert_allclose(np.abs(rotated @ rotation), 1, atol=1e-9)
    assert losses[-1] == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("n_bits", [3, 5, 9])
def test_the_loss_falls_also_where_there_are_fewer_coordinates_than_bits(rng, n_bits):
    n_parts = min(n_bits, 5)
    parts, start = rng.standard_normal((80, n_parts)), random_rotation(n_bits, rng)[:n_parts]
    rotation, losses = learn_rotation(parts, start)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(n_parts), atol=1e-12)
    assert losses[0] == pytest.approx(loss(parts @ start))
    assert losses[-1] == pytest.approx(loss(parts @ rotation))
    assert (np.diff(losses) <= 1e-12).all()
    assert losses[-1] < losses[0]


def test_random_rotations_are_orthogonal_and_of_both_hands():
    draws = [random_rotation(4, np.random.RandomState(k)) for k in range(40)]
    for rotation in draws:
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(4), atol=1e-12)
    assert {round(float(np.linalg.det(rotation))) for rotation in draws} == {-1, 1}


@pytest.mark.parametrize("n_bits", [3, 9])
def test_rotated_planes_score_every_pair_as_before_and_lie_nearer_to_their_signs(rng, n_bits):
    rows, planes = rng.standard_normal((50, 5)), rng.standard_normal((5, n_bits))
    rotated = rotate_planes(rows, planes)
    np.testing.assert_allclose(rotated @ rotated.T, planes @ planes.T, atol=1e-12)
    assert loss(rows @ rotated) < loss(rows @ planes)
