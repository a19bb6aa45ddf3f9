"""DPN's loss against its slow twin, and the bound on Hamming distances that it is made for."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oracles.centres import hamming, majority, polarisation_loss
from rankbits import methods
from rankbits.methods.deep.dpn import PolarizationLoss
from rankbits.methods.deep.hash_centers import HashTargets, build_centers
from rankbits.methods.training.batches import Batch

LOGITS = torch.from_numpy(np.random.default_rng(3).normal(size=(9, 12)))
CENTRES = build_centers(4, 12, 0).tolist()


def loss_of(margin):
    return PolarizationLoss(HashTargets(4, 12, 0), margin)


@pytest.mark.parametrize("margin", [0.4, 1.0, 3.0])
def test_the_loss_of_classes_is_that_of_plain_loops(margin):
    classes = np.arange(9) % 4
    batch = Batch(np.arange(9), torch.zeros(9, 9), 0.1, classes=torch.from_numpy(classes))
    expected = polarisation_loss(LOGITS.tolist(), [CENTRES[c] for c in classes], margin)
    assert float(loss_of(margin)(LOGITS, batch)) == pytest.approx(expected, abs=1e-12)


def test_the_loss_of_tags_counts_rows_that_have_some():
    tags = np.random.default_rng(0).integers(0, 2, (9, 4))
    tags[2] = 0
    batch = Batch(np.arange(9), torch.zeros(9, 9), 1.0, tags=torch.from_numpy(tags))
    loss = loss_of(1.0)
    targets = [majority(row, CENTRES, loss.targets.ties.tolist()) for row in tags]
    expected = polarisation_loss(LOGITS.tolist(), targets, 1.0)
    assert float(loss(LOGITS, batch)) == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 2**31))
def test_losses_of_two_rows_of_a_class_bound_their_hamming_distance(seed):
    """A bit on the wrong side costs at least m, so b L / m bounds the bits that are wrong."""
    margin, pair = 1.5, torch.from_numpy(np.random.default_rng(seed).normal(size=(2, 12)))
    batch = Batch(np.arange(2), torch.zeros(2, 2), 1.0, classes=torch.tensor([1, 1]))
    distance = hamming(*(pair > 0).tolist())
    mean = float(loss_of(margin)(pair, batch))
    assert distance <= 2 * 12 * mean / margin + 1e-9


def test_logits_of_separable_classes_are_polarised():
    y = np.arange(300) % 5
    rng = np.random.default_rng(2)
    x = (rng.normal(size=(5, 10)) * 4)[y] + rng.normal(size=(300, 10))
    settings = {"dropout": 0.0, "input_dropout": 0.0, "n_threads": 1, "random_state": 1}
    hasher = methods.get("dpn", n_bits=16, margin=1.0, **settings).fit(x, y)
    sides = hasher.project(x) * build_centers(5, 16, 0)[y]
    assert (sides > 0.9).mean() > 0.95
