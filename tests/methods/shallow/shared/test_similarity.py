"""Products with the similarities are those with the table of all pairs."""

import numpy as np
import pytest

from oracles.ksh import similarity_table
from rankbits import affinity
from rankbits.methods.shallow.shared import similarity
from rankbits.methods.shallow.shared.pair_sampling import supervise_pairs
from rankbits.methods.shallow.shared.similarity import draw_rows, similarity_of

RNG = np.random.default_rng(8)
X, Y = RNG.standard_normal((30, 3)), RNG.integers(0, 4, 30)
TAGS = RNG.integers(0, 2, (30, 3))
LEVELS = np.where(RNG.random((30, 30)) < 0.1, RNG.integers(1, 4, (30, 30)), 0)
JUDGED = [(1, 2, 3), (2, 1, 1), (4, 9, 1), (20, 3, 2)]


def judged_table():
    table = np.zeros((30, 30), bool)
    for query, item, _ in JUDGED:
        table[query, item] = True
    return table


KINDS = {
    "classes": (Y, Y[:, None] == Y),
    "tags": (TAGS, TAGS @ TAGS.T > 0),
    "levels": (affinity.levels(LEVELS), LEVELS > 0),
    "judgements": (affinity.judgements(JUDGED, 30, 30), judged_table()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_with_the_table(kind, monkeypatch):
    monkeypatch.setattr(similarity, "_BLOCK_CELLS", 100)
    y, is_relevant = KINDS[kind]
    S = similarity_table(is_relevant)
    product = similarity_of(supervise_pairs(X, y))
    assert product.n_similar == (S > 0).sum()
    for vectors in (RNG.standard_normal(30), RNG.standard_normal((30, 4))):
        np.testing.assert_allclose(product @ vectors, S @ vectors, atol=1e-12)


def test_some_of_the_rows_have_their_own_similarities():
    chosen = np.array([3, 4, 9, 20])
    product = similarity_of(supervise_pairs(X, Y).take(chosen))
    S = similarity_table(Y[chosen, None] == Y[chosen])
    np.testing.assert_array_equal(product @ np.eye(4), S)


def test_rows_are_drawn_without_repeats():
    supervision = supervise_pairs(X, Y)
    chosen = draw_rows(supervision, 20, np.random.RandomState(0))
    assert len(set(chosen)) == 20
    assert list(chosen) == sorted(chosen)
    for n_rows in (None, 30, 99):
        assert list(draw_rows(supervision, n_rows, np.random.RandomState(0))) == list(range(30))
