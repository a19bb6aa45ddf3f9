"""Hash centers: distances that are proved, targets of classes and tags, one seed and no other."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.centres import ball, best_least_distance, distances, majority
from rankbits.methods.deep import hash_centers as module
from rankbits.methods.deep.hash_centers import (
    HashTargets,
    build_centers,
    count_classes,
    hadamard,
    least_distance,
    most_distance,
    smallest_distance,
)
from rankbits.methods.supervision import supervise
from rankbits.methods.training.batches import Batch


def batch_of(**labels):
    return Batch(np.arange(2), torch.zeros(2, 2), alpha=1.0, **labels)


@pytest.mark.parametrize("size", [1, 2, 4, 32, 128])
def test_rows_of_a_hadamard_matrix_are_orthogonal(size):
    matrix = hadamard(size).astype(int)
    assert set(np.unique(matrix)) <= {-1, 1}
    assert np.array_equal(matrix @ matrix.T, size * np.eye(size, dtype=int))


@pytest.mark.parametrize(
    ("n", "n_bits"), [(2, 2), (3, 4), (10, 16), (10, 32), (32, 32), (100, 128)]
)
def test_classes_that_a_power_of_two_holds_are_half_the_bits_apart(n, n_bits):
    assert set(distances(build_centers(n, n_bits).tolist())) == {n_bits // 2}
    assert least_distance(n, n_bits) == n_bits // 2


@pytest.mark.parametrize(("n", "n_bits"), [(9, 8), (16, 8), (40, 32)])
def test_twice_as_many_take_negatives_and_are_half_the_bits_or_all_apart(n, n_bits):
    assert set(distances(build_centers(n, n_bits).tolist())) == {n_bits // 2, n_bits}
    assert least_distance(n, n_bits) == n_bits // 2


@pytest.mark.parametrize(("n", "n_bits"), [(10, 24), (10, 48), (16, 24), (30, 112)])
def test_lengths_of_large_powers_of_two_keep_half_the_bits(n, n_bits):
    assert min(distances(build_centers(n, n_bits).tolist())) >= n_bits // 2
    assert least_distance(n, n_bits) == n_bits // 2


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 40), st.integers(0, 3))
def test_any_number_of_centres_of_any_length_keeps_the_bounds(n, n_bits, seed):
    centers = build_centers(n, n_bits, seed)
    assert centers.shape == (n, n_bits)
    assert set(np.unique(centers)) <= {-1, 1}
    least = min(distances(centers.tolist()), default=n_bits)
    assert least == smallest_distance(centers)
    assert least_distance(n, n_bits) <= least <= most_distance(n, n_bits)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("n_bits", [1, 2, 3, 4])
def test_the_best_of_all_sets_of_codes_lies_between_the_bounds(n, n_bits):
    best = best_least_distance(n, n_bits)
    assert least_distance(n, n_bits) <= best <= most_distance(n, n_bits)


@pytest.mark.parametrize(("n", "n_bits"), [(5, 7), (20, 9), (100, 12), (33, 6)])
def test_greedy_finds_half_of_all_codes_free_at_the_proved_distance_and_not_one_further(n, n_bits):
    distance = module._greedy_distance(n, n_bits)
    assert 2 * (n - 1) * ball(n_bits, distance - 1) <= 2**n_bits
    assert 2 * (n - 1) * ball(n_bits, distance) > 2**n_bits


@pytest.mark.parametrize(("n", "n_bits"), [(10, 12), (100, 12), (60, 20)])
def test_greedy_raises_distances_above_what_is_proved(n, n_bits):
    assert smallest_distance(build_centers(n, n_bits)) > least_distance(n, n_bits)


@pytest.mark.parametrize(("n", "n_bits"), [(3, 1), (8, 3), (19, 3), (40, 5)])
def test_more_classes_than_codes_use_every_code_equally_often(n, n_bits):
    counts = Counter(map(tuple, build_centers(n, n_bits).tolist()))
    assert len(counts) == 2**n_bits
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize(("n", "n_bits"), [(10, 32), (10, 13), (30, 4)])
def test_a_seed_gives_the_same_centres_whatever_was_drawn_before(n, n_bits):
    state = torch.get_rng_state()
    first = build_centers(n, n_bits, 5)
    assert torch.equal(torch.get_rng_state(), state)
    np.random.seed(1)  # noqa: NPY002 - the global generator is what must not matter
    torch.manual_seed(9)
    assert np.array_equal(build_centers(n, n_bits, 5), first)
    assert not np.array_equal(build_centers(n, n_bits, 6), first)


def test_no_bit_is_the_same_for_every_class():
    centers = build_centers(32, 32)
    assert (np.abs(centers.sum(axis=0)) < 32).all()


def test_a_row_aims_at_the_centre_of_its_class():
    targets = HashTargets(4, 8, seed=2)
    aims = targets(batch_of(classes=torch.tensor([3, 0])))
    assert np.array_equal(aims.numpy(), build_centers(4, 8, 2)[[3, 0]])


def test_a_row_aims_at_the_majority_of_its_tags():
    targets = HashTargets(5, 16, seed=0)
    tags = np.random.default_rng(0).integers(0, 2, (30, 5))
    tags[:3] = [[0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
    aims = targets(batch_of(tags=torch.from_numpy(tags)))
    ties = targets.ties.tolist()
    for row, centers in zip(tags, aims.tolist(), strict=True):
        assert centers == (majority(row, build_centers(5, 16, 0).tolist(), ties) or [0] * 16)
    assert set(ties) == {-1, 1}
    assert targets.ties.equal(HashTargets(5, 16, seed=0).ties)


def test_targets_are_part_of_the_state():
    one, other = HashTargets(4, 13, seed=0), HashTargets(4, 13, seed=1)
    assert not one.centers.equal(other.centers)
    other.load_state_dict(one.state_dict())
    assert one.centers.equal(other.centers)
    assert one.ties.equal(other.ties)
    assert not list(one.parameters())


def test_classes_are_counted_by_the_largest_and_tags_by_columns():
    x = np.zeros((4, 2))
    assert count_classes(supervise(x, ["b", "a", "c", "a"])) == 3
    assert count_classes(supervise(x, np.array([[1, 0, 0, 0]] * 2 + [[0, 1, 0, 0]] * 2))) == 4
