"""Which rows are ranked together, and how they are changed."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rankbits import affinity
from rankbits.methods.supervision import supervise
from rankbits.methods.training import batches, inputs
from rankbits.methods.training.parameters import BATCHES


def epoch_of(name, y, batch_size, seed=0):
    supervision = supervise(np.zeros((len(y), 1)) if isinstance(y, np.ndarray) else y_rows(y), y)
    return batches.build_sampler(name, supervision, batch_size)(np.random.default_rng(seed))


def y_rows(relation):
    return np.zeros((relation.shape[0], 1))


@given(st.integers(1, 200), st.integers(2, 70), st.integers(0, 5))
def test_plain_batches_hold_every_row_once_and_differ_by_at_most_one_in_size(n, size, seed):
    epoch = batches.draw_plain(n, size, np.random.default_rng(seed))
    assert sorted(np.concatenate(epoch).tolist()) == list(range(n))
    lengths = [len(batch) for batch in epoch]
    assert max(lengths) <= size
    assert (len(lengths) - 1) * size < n  # no more batches than it takes
    assert max(lengths) - min(lengths) <= 1


@given(st.lists(st.integers(0, 6), min_size=12, max_size=80), st.integers(4, 40), st.integers(0, 3))
def test_balanced_batches_take_as_many_rows_of_each_class_as_it_has(labels, size, seed):
    y = np.unique(np.array([0, 0, 1, *labels]), return_inverse=True)[1]
    if size >= len(y):
        return
    quota = max(2, size // (y.max() + 1))
    n_classes = min(y.max() + 1, size // quota)
    sizes = Counter(y.tolist())
    for batch in epoch_of("balanced", y, size, seed):
        assert len(set(batch.tolist())) == len(batch) <= size
        counts = Counter(y[batch].tolist())
        assert len(counts) == n_classes
        assert all(n == min(quota, sizes[c]) for c, n in counts.items())


def test_balanced_batches_go_through_a_class_before_they_repeat_it():
    y = np.repeat([0, 1], [4, 36])
    epoch = epoch_of("balanced", y, 8)  # five batches of four and four
    seen = np.concatenate([batch[y[batch] == 1] for batch in epoch])
    assert len(set(seen.tolist())) == len(seen) == 20


def test_anchored_batches_bring_queries_with_their_positives_and_each_query_once(rng):
    pairs = {(query, int(item)) for query in range(50) for item in rng.integers(100, 400, 4)}
    relation = affinity.judgements([(q, i, 1 + i % 3) for q, i in sorted(pairs)], 400, 400)
    epoch = epoch_of("anchors", relation, 40)
    anchors = []
    for batch in epoch:
        assert len(set(batch.tolist())) == len(batch) == 40
        inside = set(batch.tolist())
        head = [row for row in batch[:10].tolist() if row < 50]
        anchors += head
        for query in head:
            n_positives = sum((query, item) in pairs for item in inside)
            assert n_positives >= min(3, sum(q == query for q, _ in pairs))
    assert sorted(anchors) == list(range(50))


def test_a_batch_as_large_as_the_training_set_is_all_of_it_in_order():
    y = np.arange(10) % 2
    for name in BATCHES:
        (batch,) = epoch_of(name, y, 10)
        assert batch.tolist() == list(range(10))


def test_the_generator_alone_decides_the_batches():
    y = np.arange(90) % 5
    for name in BATCHES:
        first, again, other = (epoch_of(name, y, 20, seed) for seed in (3, 3, 4))
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
        assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_partners_are_of_the_same_class_and_reach_all_of_it(rng):
    classes = np.array([2, 0, 1, 0, 2, 2, 0, 1, 3])
    rows = np.array([0, 1, 8] * 200)
    drawn = inputs.draw_mixture(rows, classes, 0.4, rng)
    assert (classes[drawn.partners] == classes[rows]).all()
    for row in (0, 1, 8):
        reached = set(drawn.partners[rows == row].tolist())
        assert reached == set(np.flatnonzero(classes == classes[row]).tolist())
    assert ((drawn.weights >= 0.5) & (drawn.weights <= 1)).all()
    assert inputs.draw_mixture(rows, classes, 0.0, rng) is None


def test_a_mixture_is_the_weighted_mean_of_a_row_and_its_partner(rng):
    rows = torch.tensor([[0.0, 0.0], [10.0, -4.0], [6.0, 2.0]])
    drawn = inputs.Mixture(np.array([1, 2]), np.array([0.75, 0.5]))
    mixed = inputs.mix_rows(rows, np.array([0, 1]), drawn, slice(0, 2), rng)
    assert mixed.tolist() == [[2.5, -1.0], [8.0, -1.0]]
    second = inputs.mix_rows(rows, np.array([0, 1]), drawn, slice(1, 2), rng)
    assert second.tolist() == [[8.0, -1.0]]


def test_noise_is_in_units_of_each_feature(rng):
    draws = torch.from_numpy(rng.normal(size=(4000, 2)))
    changed = inputs.add_noise(torch.zeros(4000, 2), torch.tensor([1.0, 50.0]), 0.3, draws)
    assert changed.std(0).tolist() == pytest.approx([0.3, 15.0], rel=0.05)
