"""Concomitant min hashing: symbols agree with a probability that the angle alone decides."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from rankbits import methods
from rankbits.errors import FileFormatError, InputError

N_BITS, N_DRAWS = 4092, 3  # bits of whole symbols


def agreement(angle, n_values):
    """P(the same index has the least of K values in both), by quadrature over the first row's.

    Given u at the least index and v its concomitant, the other K - 1 pairs must lie above both.
    """
    rho = np.cos(angle)
    rest = np.sqrt(1 - rho**2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    def at(u):
        v = rho * u + rest * nodes
        above = norm.sf(u) + norm.sf(v) - 1
        corner = multivariate_normal([0, 0], [[1, rho], [rho, 1]])
        both = above + corner.cdf(np.stack([np.full_like(v, u), v], axis=1))
        return norm.pdf(u) * (weights @ both ** (n_values - 1))

    return n_values * quad(at, -7, 7, epsabs=1e-4)[0]


def pair_at(angle):
    return np.array([[1.0, 0, 0], [3 * np.cos(angle), 0, 3 * np.sin(angle)]])


def symbols_agree(angle, n_values):
    width = int(np.log2(n_values))
    shares = []
    for seed in range(N_DRAWS):
        hasher = methods.get(
            "cmh", n_bits=N_BITS, n_directions=n_values, center=False, random_state=seed
        )
        bits = hasher.fit(pair_at(angle)).encode(pair_at(angle)).bits().reshape(2, -1, width)
        shares.append((bits[0] == bits[1]).all(axis=1).mean())
    return np.mean(shares), 4 * np.sqrt(0.25 / (N_DRAWS * N_BITS / width))


@pytest.mark.parametrize("degrees", [10, 60, 90, 150])
def test_two_directions_are_lsh(degrees):
    share, error = symbols_agree(np.deg2rad(degrees), 2)
    assert share == pytest.approx(1 - degrees / 180, abs=error)
    assert agreement(np.deg2rad(degrees), 2) == pytest.approx(1 - degrees / 180, abs=2e-3)


@pytest.mark.parametrize("degrees", [25, 60, 120])
def test_more_directions_agree_as_concomitants_say(degrees):
    angle = np.deg2rad(degrees)
    share, error = symbols_agree(angle, 4)
    assert share == pytest.approx(agreement(angle, 4), abs=error)


def test_rows_at_a_right_angle_agree_by_chance():
    share, error = symbols_agree(np.pi / 2, 8)
    assert share == pytest.approx(1 / 8, abs=error)


def test_bits_are_those_of_the_definition(rng):
    rows = rng.standard_normal((40, 5)) + 2
    hasher = methods.get("cmh", n_bits=13, n_directions=8, random_state=0).fit(rows)
    assert hasher.directions_.shape == (5, 5, 8)
    for row, bits in zip(rows, hasher.encode(rows).bits(), strict=True):
        expected = ""
        for symbol in range(5):
            values = [
                sum((row - rows.mean(axis=0)) * hasher.directions_[:, symbol, k]) for k in range(8)
            ]
            expected += f"{values.index(min(values)):03b}"
        assert "".join(map(str, bits)) == expected[:13]


def test_lengths_of_rows_do_not_count(rng):
    rows = rng.standard_normal((50, 6))
    hasher = methods.get("cmh", n_bits=70, center=False, random_state=0).fit(rows)
    scaled = rows * rng.uniform(0.01, 100, (50, 1))
    assert np.array_equal(hasher.transform(rows), hasher.transform(scaled))


def test_bad_input_is_refused(rng):
    rows = rng.standard_normal((9, 3))
    with pytest.raises(InputError, match="n_directions must be an integer >= 2, got 1"):
        methods.get("cmh", n_directions=1).fit(rows)
    hasher = methods.get("cmh", n_bits=8, random_state=0).fit(rows)
    arrays, _ = hasher._state()
    with pytest.raises(FileFormatError, match="directions must be two or more for each symbol"):
        hasher._restore(arrays, {"code_length": 9})
