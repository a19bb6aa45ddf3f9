"""Pairs that are drawn are pairs of the table of all, each in both directions and once."""

import numpy as np
import pytest

from oracles.ksh import similarity_table
from rankbits import affinity
from rankbits.errors import InputError
from rankbits.methods.shallow.shared import pair_sampling
from rankbits.methods.shallow.shared.pair_sampling import draw_pairs, supervise_pairs

RNG = np.random.default_rng(8)
X, Y = RNG.standard_normal((30, 3)), RNG.integers(0, 4, 30)
LEVELS = np.where(RNG.random((30, 30)) < 0.1, RNG.integers(1, 4, (30, 30)), 0)
KINDS = {
    "classes": (Y, Y[:, None] == Y),
    "levels": (affinity.levels(LEVELS), LEVELS > 0),
}


def drawn(kind, n_similar, n_dissimilar):
    supervision = supervise_pairs(X, KINDS[kind][0])
    return draw_pairs(supervision, n_similar, n_dissimilar, np.random.default_rng(0))


@pytest.mark.parametrize("kind", KINDS)
def test_all_partners_are_all_pairs_of_the_table(kind, monkeypatch):
    monkeypatch.setattr(pair_sampling, "_BLOCK_CELLS", 100)
    S = similarity_table(KINDS[kind][1])
    np.fill_diagonal(S, 0)
    pairs = drawn(kind, 30, 30)
    assert len(pairs.first) == 30 * 29
    np.testing.assert_array_equal(pairs.matrix(np.where(pairs.is_similar, 1.0, -1.0)).toarray(), S)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_has_at_least_the_partners_that_it_drew(kind):
    S = similarity_table(KINDS[kind][1])
    pairs = drawn(kind, 2, 5)
    for row in range(30):
        similar, dissimilar = pairs.partners(row)
        assert (S[row, similar] > 0).all()
        assert (S[row, dissimilar] < 0).all()
        assert len(similar) >= min(2, (S[row] > 0).sum() - 1)
        assert len(dissimilar) >= min(5, (S[row] < 0).sum())
    keys = pairs.first * 30 + pairs.second
    assert len(set(keys)) == len(keys)
    assert set(keys) == set(pairs.second * 30 + pairs.first)
    assert len(keys) < 30 * 20


def test_pairs_differ_where_their_bits_do():
    pairs, bits = drawn("classes", 2, 2), RNG.integers(0, 2, 30)
    expected = [bits[i] != bits[j] for i, j in zip(pairs.first, pairs.second, strict=True)]
    assert list(pairs.differ(bits)) == expected


def test_a_single_row_has_no_pair():
    with pytest.raises(InputError, match=r"X must have at least two rows .* got n_samples = 1"):
        supervise_pairs(X[:1], Y[:1])
