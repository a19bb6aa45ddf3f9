"""One bit of all rows: cuts equal brute force, blocks have no dissimilar pair, E never rises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from oracles.pair_bits import least_energy, total_loss
from rankbits import affinity
from rankbits.methods.shallow.shared.block_cuts import (
    energy,
    group_rows,
    minimize_bit,
    minimum_cut,
    spectral_bits,
)
from rankbits.methods.shallow.shared.pair_losses import LOSSES, bit_weights, pair_losses
from rankbits.methods.shallow.shared.pair_sampling import draw_pairs
from rankbits.methods.supervision import supervise

Y = np.repeat([0, 1, 2], 12)


def pairs_of(y=Y, n_similar=5, n_dissimilar=6, seed=0):
    supervision = supervise(np.zeros((len(y), 2)), y)
    return draw_pairs(supervision, n_similar, n_dissimilar, np.random.default_rng(seed))


def submodular(rng, m, scale=1.0):
    """Symmetric weights of at most 0, a third of them 0, and a linear term."""
    weights = -scale * rng.random((m, m)) * (rng.random((m, m)) < 0.67)
    weights = np.triu(weights, 1)
    return weights + weights.T, 2.0 * scale * rng.standard_normal(m)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e7])
@pytest.mark.parametrize("m", [1, 2, 5, 9])
def test_a_cut_of_a_submodular_block_is_the_best_of_all_assignments(m, scale):
    rng = np.random.default_rng(m)
    for _ in range(8):
        weights, linear = submodular(rng, m, scale)
        cut = minimum_cut(linear, csr_array(weights))
        least, _ = least_energy(weights, linear)
        assert energy(csr_array(weights), cut, linear) == pytest.approx(least, rel=1e-6)


@given(st.integers(1, 7), st.integers(0, 10**6))
def test_a_cut_of_integers_is_exact(m, seed):
    rng = np.random.default_rng(seed)
    weights, linear = submodular(rng, m, 9.0)
    weights, linear = np.rint(weights), np.rint(linear)
    cut = minimum_cut(linear, csr_array(weights))
    assert energy(csr_array(weights), cut, linear) == least_energy(weights, linear)[0]


def test_without_any_weight_a_cut_is_any_assignment():
    assert np.abs(minimum_cut(np.zeros(3), csr_array((3, 3)))).tolist() == [1, 1, 1]


def test_blocks_hold_every_row_once_and_no_dissimilar_pair(rng):
    levels = (rng.random((40, 40)) < 0.6) | np.eye(40, dtype=bool)
    for y in (Y, affinity.levels((levels | levels.T) * 1)):
        pairs = pairs_of(y, 30, 30) if y is Y else pairs_of_affinity(y)
        blocks = group_rows(pairs, max_size=7)
        assert sorted(np.concatenate(blocks).tolist()) == list(range(pairs.n_rows))
        assert 1 < max(map(len, blocks)) <= 7
        block_of = np.empty(pairs.n_rows, int)
        for number, block in enumerate(blocks):
            block_of[block] = number
        is_inside = block_of[pairs.first] == block_of[pairs.second]
        assert pairs.is_similar[is_inside].all()


def pairs_of_affinity(y):
    return draw_pairs(supervise(np.zeros((40, 2)), y), 9, 9, np.random.default_rng(0))


def test_classes_are_blocks():
    blocks = group_rows(pairs_of(n_similar=8, n_dissimilar=30))
    assert [Y[block].tolist() for block in blocks] == [[label] * 12 for label in range(3)]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_weights_of_a_bit_say_what_it_adds_to_the_loss(loss, rng):
    pairs = pairs_of(Y[::3], 2, 2)
    codes = rng.choice([-1.0, 1.0], (12, 5))
    distances = sum(pairs.differ(bit) * 1 for bit in codes[:, :4].T)
    weights = pairs.matrix(bit_weights(loss, 5, distances, pairs) / 2.0)
    other = codes.copy()
    other[:, 4] = rng.choice([-1.0, 1.0], 12)
    change = total_loss(loss, other, pairs) - total_loss(loss, codes, pairs)
    assert energy(weights, other[:, 4]) - energy(weights, codes[:, 4]) == pytest.approx(change)
    losses = pair_losses(loss, 5, distances + pairs.differ(codes[:, 4]), pairs)
    assert losses.sum() == pytest.approx(total_loss(loss, codes, pairs))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_bits", [1, 2, 7, 64])
def test_weights_are_submodular_within_blocks_at_every_distance(loss, n_bits, rng):
    pairs = pairs_of()
    distances = rng.integers(0, n_bits, len(pairs.first))
    weights = bit_weights(loss, n_bits, distances, pairs)
    assert (weights[pairs.is_similar] <= 0).all()
    assert (weights[~pairs.is_similar] >= 0).all()


def random_problem(rng):
    """Weights of either sign between three blocks of four rows, and at most 0 within them."""
    blocks = [np.arange(first, first + 4) for first in (0, 4, 8)]
    weights = np.triu(rng.standard_normal((12, 12)), 1)
    for block in blocks:
        weights[np.ix_(block, block)] = -np.abs(weights[np.ix_(block, block)])
    return weights + weights.T, blocks, rng.standard_normal(12)


@pytest.mark.parametrize("seed", range(5))
def test_energy_never_rises_and_no_block_can_be_improved_at_the_end(seed):
    rng = np.random.default_rng(seed)
    dense, blocks, linear = random_problem(rng)
    weights, bits = csr_array(dense), rng.choice([-1.0, 1.0], 12)
    values = [energy(weights, bits, linear)]
    for _ in range(8):
        bits = minimize_bit(weights, blocks, bits, linear, max_rounds=1)
        values.append(energy(weights, bits, linear))
    assert (np.diff(values) <= 1e-9).all()
    assert values[-1] < values[0]
    for block in blocks:
        rest = np.setdiff1d(np.arange(12), block)
        given = linear[block] + 2.0 * dense[np.ix_(block, rest)] @ bits[rest]
        inside = dense[np.ix_(block, block)]
        least, _ = least_energy(inside, given)
        here = bits[block] @ inside @ bits[block] + given @ bits[block]
        assert here == pytest.approx(least)


@pytest.mark.parametrize("n_rows", [36, 120])
def test_the_first_bits_tell_two_groups_apart(n_rows, rng):
    y = np.arange(n_rows) % 2
    pairs = pairs_of(y, 4, 4)
    weights = pairs.matrix(bit_weights("hinge", 1, np.zeros(len(pairs.first), int), pairs))
    bits = spectral_bits(weights, np.random.default_rng(0))
    assert set(np.unique(bits)) == {-1.0, 1.0}
    assert len(set(zip(bits, y, strict=True))) == 2
    nothing = spectral_bits(0.0 * weights, np.random.default_rng(0))
    assert set(np.unique(nothing)) == {-1.0, 1.0}


def test_pairs_are_drawn_once_in_both_directions_and_are_what_y_says():
    pairs = pairs_of()
    drawn = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert len(set(drawn)) == len(drawn)
    assert {(j, i) for i, j in drawn} == set(drawn)
    assert (pairs.first != pairs.second).all()
    assert np.array_equal(pairs.is_similar, Y[pairs.first] == Y[pairs.second])
    assert (np.diff(pairs.first) >= 0).all()
    for row in range(len(Y)):
        similar, dissimilar = pairs.partners(row)
        assert len(similar) >= 5
        assert len(dissimilar) >= 6
        assert set(similar) | set(dissimilar) == {j for i, j in drawn if i == row}


def test_rows_with_few_partners_have_all_of_them():
    pairs = pairs_of(np.array([0, 0, 1, 2]), 9, 9)
    assert len(pairs.first) == 12
    assert pairs.is_similar.sum() == 2


def test_one_direction_is_enough_to_be_similar():
    levels = np.zeros((4, 4), int)
    levels[0, 1] = 3
    pairs = draw_pairs(
        supervise(np.zeros((4, 2)), affinity.levels(levels)), 9, 9, np.random.default_rng(0)
    )
    similar = set(zip(pairs.first[pairs.is_similar], pairs.second[pairs.is_similar], strict=True))
    assert similar == {(0, 1), (1, 0)}
    assert len(pairs.first) == 12
