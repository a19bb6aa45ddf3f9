"""PCA under a random rotation: the principal subspace, in which every direction is as likely."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from rankbits import methods
from rankbits.errors import InputError


@pytest.fixture(scope="module")
def rows():
    return load_digits().data[:400]  # few enough for the exact solver


def test_planes_are_an_orthonormal_basis_of_the_principal_subspace(rows):
    rotated = methods.get("pca-rr", n_bits=12, random_state=0).fit(rows)
    covariance = np.cov(rows.T)
    top = np.linalg.eigh(covariance)[1][:, -12:]
    np.testing.assert_allclose(rotated.planes_.T @ rotated.planes_, np.eye(12), atol=1e-10)
    np.testing.assert_allclose(rotated.planes_ @ rotated.planes_.T, top @ top.T, atol=1e-8)
    assert np.abs(np.diag(top.T @ rotated.planes_)).max() < 0.9  # they are not the components


def test_it_is_itq_without_turns(rows):
    rotated = methods.get("pca-rr", n_bits=12, random_state=3).fit(rows)
    start = methods.get("itq", n_bits=12, n_iter=0, random_state=3).fit(rows)
    np.testing.assert_allclose(rotated.planes_, start.planes_, atol=1e-12)


def test_rows_at_an_angle_differ_in_that_share_of_half_a_turn():
    directions = np.array([[1.0, 0, 0, 0], [0.5, np.sqrt(0.75), 0, 0]])  # 60 degrees
    around = np.diag([5.0, 4.0, 3.0, 2.0])
    training = np.concatenate([around, -around])
    n_differing, n_draws = 0, 200
    for seed in range(n_draws):
        bits = methods.get("pca-rr", n_bits=4, random_state=seed).fit(training)
        one, other = bits.encode(directions).bits()
        n_differing += int((one != other).sum())
    share = n_differing / (4 * n_draws)
    assert share == pytest.approx(1 / 3, abs=4 * np.sqrt(2 / 9 / n_draws / 4))


def test_bits_share_the_variance_where_components_do_not(rows):
    def spread(name):
        variances = methods.get(name, n_bits=32, random_state=0).fit(rows).project(rows).var(axis=0)
        return variances.max() / variances.min()

    assert spread("pca-rr") < 5 < 20 < spread("pcah")


def test_more_bits_than_directions_and_equal_rows_are_refused(rng):
    with pytest.raises(InputError, match=r"n_bits must be at most 4, .* got 5; take"):
        methods.get("pca-rr", n_bits=5).fit(rng.standard_normal((50, 4)))
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        methods.get("pca-rr", n_bits=2).fit(np.full((9, 3), 0.1))
