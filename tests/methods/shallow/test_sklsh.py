"""Shift-invariant kernels: the share of differing bits is a function of the kernel."""

import numpy as np
import pytest
from scipy.stats import norm

from rankbits import methods
from rankbits.errors import InputError


def expected_share(distance, gamma):
    """Half of E|cos(p + u) - cos(u)|, p ~ N(0, 2 gamma distance²), u uniform, by quadrature.

    The mean over u is 4 / pi |sin(p / 2)|, since a difference of cosines is a product of sines.
    """
    scale = np.sqrt(2 * gamma) * distance
    p = np.linspace(-10 * scale, 10 * scale, 200001)
    return np.trapezoid(2 / np.pi * np.abs(np.sin(p / 2)) * norm.pdf(p, scale=scale or 1), p)


def series(distance, gamma):
    """Raginsky and Lazebnik's series, which the module states."""
    m = np.arange(1, 20001)
    return 8 / np.pi**2 * ((1 - np.exp(-gamma * (m * distance) ** 2)) / (4 * m**2 - 1)).sum()


@pytest.mark.parametrize("distance", [0.0, 0.1, 0.7, 1.5, 4.0, 30.0])
@pytest.mark.parametrize("gamma", [0.3, 2.0])
def test_two_rows_differ_in_a_share_of_bits_that_follows_the_kernel(distance, gamma):
    pair = np.zeros((2, 5))
    pair[1, 2], pair[1, 4] = 0.6 * distance, 0.8 * distance
    n_bits, n_draws, n_differing = 4096, 5, 0
    for seed in range(n_draws):
        hasher = methods.get("sklsh", n_bits=n_bits, gamma=gamma, random_state=seed)
        one, other = hasher.fit(pair + 3).encode(pair + 3).bits()
        n_differing += int((one != other).sum())
    expected = expected_share(distance, gamma)
    assert expected == pytest.approx(series(distance, gamma), abs=1e-4)
    error = np.sqrt(expected * (1 - expected) / (n_bits * n_draws))
    assert abs(n_differing / (n_bits * n_draws) - expected) <= 4 * error


def test_logits_are_those_of_the_definition(rng):
    rows = rng.standard_normal((30, 4))
    hasher = methods.get("sklsh", n_bits=7, random_state=0).fit(rows)
    for row, logits in zip(rows, hasher.project(rows), strict=True):
        for k in range(7):
            angle = (row - rows.mean(axis=0)) @ hasher.planes_[:, k] + hasher.phases_[k]
            assert logits[k] == pytest.approx(np.cos(angle) + hasher.thresholds_[k], abs=1e-12)
    assert (np.abs(hasher.thresholds_) <= 1).all()


def test_without_gamma_the_median_distance_sets_the_kernel(rng):
    rows = rng.standard_normal((300, 40))
    squares = np.square(rows[:, None] - rows).sum(axis=2)
    gamma = 1 / np.median(squares[~np.eye(300, dtype=bool)])
    hasher = methods.get("sklsh", n_bits=4000, random_state=0).fit(rows)
    assert hasher.planes_.var() == pytest.approx(2 * gamma, rel=0.02)
    scaled = methods.get("sklsh", n_bits=4000, random_state=0).fit(100 * rows)
    np.testing.assert_allclose(scaled.project(100 * rows), hasher.project(rows), atol=1e-6)


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        methods.get("sklsh", n_bits=2).fit(np.ones((9, 3)))
    for gamma in (0, -1.0, "1", np.inf):
        with pytest.raises(InputError, match="gamma must be a positive number or None"):
            methods.get("sklsh", n_bits=2, gamma=gamma).fit(np.eye(3))
