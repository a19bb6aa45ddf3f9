"""Random hyperplanes: the angle between two rows is what their codes tell."""

import numpy as np
import pytest

from rankbits import methods


def at_angle(angle, centre):
    """Two rows seen from the centre at this angle, one of them twice as far."""
    first, second = np.zeros((2, 5))
    first[1], second[1], second[3] = 1.0, 2 * np.cos(angle), 2 * np.sin(angle)
    return np.stack([first, second]) + centre


@pytest.mark.parametrize("degrees", [0, 10, 45, 90, 135, 180])
def test_two_rows_agree_in_1_minus_their_angle_over_pi_of_the_bits(degrees):
    angle, n_bits, n_draws = np.deg2rad(degrees), 4096, 5
    pair, agreed = at_angle(angle, np.zeros(5)), []
    for seed in range(n_draws):
        lsh = methods.get("lsh", n_bits=n_bits, center=False, random_state=seed).fit(pair)
        one, other = lsh.encode(pair).bits()
        agreed.append((one == other).mean())
    expected = 1 - angle / np.pi
    error = np.sqrt(expected * (1 - expected) / (n_bits * n_draws))
    assert abs(np.mean(agreed) - expected) <= 4 * error


def test_centred_hyperplanes_meet_in_the_training_mean(rng):
    centre = np.array([5.0, -3.0, 0.0, 2.0, 9.0])
    around = rng.standard_normal((500, 5))
    train = np.concatenate([centre + around, centre - around])
    lsh = methods.get("lsh", n_bits=4096, random_state=1).fit(train)
    np.testing.assert_allclose(lsh.mean_, centre, atol=1e-12)
    one, other = lsh.encode(at_angle(np.pi / 3, centre)).bits()
    assert (one == other).mean() == pytest.approx(2 / 3, abs=0.03)


def test_a_code_does_not_depend_on_the_length_of_a_row(rng):
    rows = rng.standard_normal((50, 6))
    lsh = methods.get("lsh", n_bits=70, center=False, random_state=0).fit(rows)
    scaled = rows * rng.uniform(0.01, 100, (50, 1))
    assert np.array_equal(lsh.transform(rows), lsh.transform(scaled))
    assert np.array_equal(lsh.encode(-rows).bits(), 1 - lsh.encode(rows).bits())


def test_there_may_be_more_bits_than_features_and_up_to_4096(rng):
    rows = rng.standard_normal((3, 2))
    assert methods.get("lsh", n_bits=4096).fit_transform(rows).shape == (3, 512)


def test_another_seed_draws_other_hyperplanes(rng):
    rows = rng.standard_normal((20, 4))
    one, other = (methods.get("lsh", random_state=k).fit(rows).planes_ for k in (0, 1))
    assert not np.isclose(one, other).any()
