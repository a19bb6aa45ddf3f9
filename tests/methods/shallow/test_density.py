"""Density sensitive hashing: the most balanced planes halfway between neighboring groups."""

import numpy as np
import pytest

from oracles.density import candidates, entropy_of
from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods.shallow import density
from rankbits.methods.shallow.shared.groups import count_members


@pytest.fixture
def rows(rng):
    return rng.standard_normal((300, 6)) * np.linspace(2, 1, 6) + 3


@pytest.mark.parametrize("is_mutual", [True, False])
@pytest.mark.parametrize(("n_nearest", "n_least"), [(3, 1), (1, 20), (2, 66)])
def test_pairs_are_those_of_the_definition(rng, n_nearest, n_least, is_mutual):
    centers = rng.standard_normal((12, 4))
    pairs = density.neighboring_pairs(centers, n_nearest, n_least, is_mutual)
    expected = candidates(centers, n_nearest, n_least, is_mutual)
    assert [tuple(pair) for pair in pairs] == expected


def test_a_plane_is_as_far_from_both_centers(rng):
    centers = rng.standard_normal((5, 3))
    pairs = np.array([[0, 1], [2, 4]])
    normals, offsets = density.halfway_planes(centers, pairs)
    for (i, j), normal, offset in zip(pairs, normals, offsets, strict=True):
        points = rng.standard_normal((50, 3))
        is_nearer = np.linalg.norm(points - centers[i], axis=1) < np.linalg.norm(
            points - centers[j], axis=1
        )
        assert np.array_equal(points @ normal > offset, is_nearer)


@pytest.mark.parametrize("adjacency", ["mutual", "either"])
def test_the_planes_with_the_largest_entropy_are_kept(rows, adjacency, monkeypatch):
    kept_centers = []
    find = density.find_centers

    def remember(*arguments):
        kept_centers.append(find(*arguments))
        return kept_centers[-1]

    monkeypatch.setattr(density, "find_centers", remember)
    hasher = methods.get("density", n_bits=10, adjacency=adjacency, random_state=0).fit(rows)
    (centers,) = kept_centers
    assert len(centers) == 15
    sizes = count_members(rows - rows.mean(axis=0), centers)
    assert sizes.sum() == 300
    pairs = candidates(centers, 3, 10, adjacency == "mutual")
    entropies = [entropy_of(centers, sizes, pair) for pair in pairs]
    order = sorted(range(len(pairs)), key=lambda k: (-round(entropies[k], 9), k))[:10]
    expected = np.stack([centers[pairs[k][0]] - centers[pairs[k][1]] for k in order], axis=1)
    np.testing.assert_allclose(hasher.planes_, expected, atol=1e-12)
    shares = hasher.balances_
    of_shares = -(shares * np.log(shares) + (1 - shares) * np.log(1 - shares))
    np.testing.assert_allclose(of_shares, [entropies[k] for k in order], atol=1e-9)


def test_groups_that_lie_apart_are_not_cut(rng):
    corners = np.array([[0.0, 0.0], [90.0, 0.0], [0.0, 80.0], [85.0, 95.0]])
    labels = np.arange(400) % 4
    rows = corners[labels] + rng.uniform(-1, 1, (400, 2))
    params = {"n_bits": 2, "group_factor": 2.0, "n_rounds": 20, "random_state": 0}
    codes = methods.get("density", **params).fit_transform(rows)[:, 0]
    for label in range(4):
        assert len(set(codes[labels == label])) == 1


def test_more_bits_than_pairs_of_groups_are_refused():
    rows = np.repeat(np.arange(4.0), 5)[:, None]
    sentence = r"n_bits must be at most 6, the pairs of 4 groups .* got 7; take fewer bits"
    with pytest.raises(InputError, match=sentence):
        methods.get("density", n_bits=7, random_state=0).fit(rows)
    assert methods.get("density", n_bits=6, random_state=0).fit(rows).n_bits_ == 6


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"group_factor": 0.5}, "group_factor must be a finite number, 1 or more"),
        ({"n_rounds": 0}, "n_rounds must be an integer >= 1"),
        ({"n_nearest": 0}, "n_nearest must be an integer >= 1"),
        ({"adjacency": "both"}, "adjacency must be one of mutual, either"),
    ],
)
def test_parameters_without_a_meaning_are_refused(rows, params, sentence):
    with pytest.raises(InputError, match=sentence):
        methods.get("density", n_bits=2, **params).fit(rows)
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        methods.get("density", n_bits=2).fit(np.ones((9, 3)))
