"""Spherical hashing: balanced bits, pairs of them near independent."""

import numpy as np
import pytest

from oracles.spheres import moved, overlap
from rankbits import BinaryCodes, methods
from rankbits.errors import InputError
from rankbits.methods.shallow import sph


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(8)
    return rng.standard_normal((1000, 12)) * np.linspace(3, 1, 12) + 5


def test_every_bit_is_balanced_and_pairs_are_near_independent(rows):
    hasher = methods.get("sph", n_bits=20, random_state=0).fit(rows)
    bits = hasher.encode(rows).bits().astype(int)
    assert (bits.sum(axis=0) == 500).all()
    shared = (bits.T @ bits)[np.triu_indices(20, 1)]
    assert np.abs(shared - 250).mean() <= 0.1 * 250
    assert shared.std() <= 0.15 * 250
    assert hasher.history_[-1]["error"] == pytest.approx(np.abs(shared - 250).mean() / 250)
    assert hasher.history_[-1]["deviation"] == pytest.approx(shared.std() / 250)
    assert hasher.history_[0]["error"] > 0.3


def test_overlaps_and_a_round_are_those_of_the_definition(rng):
    rows, centers = rng.standard_normal((40, 3)), rng.standard_normal((5, 3))
    distances = np.sqrt(np.square(rows[:, None] - centers).sum(axis=2))
    spheres = list(zip(centers, np.median(distances, axis=0), strict=True))
    overlaps = [[overlap(rows, spheres, i, j) for j in range(5)] for i in range(5)]
    excess = sph.excess_overlaps(rows, centers)
    is_pair = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(excess[is_pair], (np.array(overlaps) / 10 - 1)[is_pair], atol=1e-6)
    after, history = sph.move_centers(rows, centers, 1e-9, 1)
    expected = np.array(moved(centers, overlaps, 40))
    is_better = history[1]["error"] <= history[0]["error"]
    assert is_better
    np.testing.assert_allclose(after, expected, atol=1e-6)


def test_the_round_with_the_least_error_is_kept(rng):
    rows = rng.standard_normal((12, 2))
    start = sph.draw_means(rows, 30, np.random.RandomState(0))
    centers, history = sph.move_centers(rows, start, 1e-6, 40)
    assert len(history) == 41
    errors = [record["error"] for record in history]
    assert sph.summarize(sph.excess_overlaps(rows, centers))["error"] == pytest.approx(min(errors))


@pytest.mark.parametrize("n", [2, 3, 10, 11])
def test_half_of_the_values_lie_below(rng, n):
    values = rng.standard_normal((n, 4))
    assert ((values < sph.halve(values)).sum(axis=0) == n // 2).all()


def test_bits_are_1_inside(rows):
    hasher = methods.get("sph", n_bits=6, random_state=0).fit(rows)
    distances = np.linalg.norm(rows[:, None] - hasher.centers_, axis=2)
    inside = distances < np.sqrt(hasher.squared_radii_)
    assert np.array_equal(hasher.encode(rows).bits(), inside)
    assert hasher.encode(hasher.centers_).bits().diagonal().all()
    assert not hasher.encode(rows + 1e3).bits().any()


def test_spherical_distances_divide_what_differs_by_what_is_shared():
    queries = BinaryCodes.from_bits(np.array([[1, 1, 0, 0], [0, 0, 0, 0]]))
    items = BinaryCodes.from_bits(np.array([[1, 0, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]]))
    expected = [[3.0, 0.0, np.inf], [np.inf] * 3]
    assert methods.SpH.spherical_distances(queries, items).tolist() == expected
    with pytest.raises(InputError, match="codes of one length, got 4 and 5 bits"):
        methods.SpH.spherical_distances(queries, BinaryCodes.from_bits(np.ones((1, 5))))


def test_of_many_rows_some_are_drawn(rng, monkeypatch):
    monkeypatch.setattr(sph, "_MOST_ROWS", 100)
    rows = rng.standard_normal((5000, 3))
    bits = methods.get("sph", n_bits=4, random_state=0).fit(rows).encode(rows).bits()
    assert (np.abs(bits.mean(axis=0) - 0.5) < 0.2).all()
    assert (bits.sum(axis=0) != 2500).any()


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"tolerance": 0}, "tolerance must be a finite number above 0"),
        ({"max_rounds": -1}, "max_rounds must be an integer >= 0"),
    ],
)
def test_parameters_without_a_meaning_are_refused(rows, params, sentence):
    with pytest.raises(InputError, match=sentence):
        methods.get("sph", n_bits=2, **params).fit(rows)
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        methods.get("sph", n_bits=2).fit(np.ones((9, 3)))
