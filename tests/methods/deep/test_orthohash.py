"""OrthoHash's loss against its slow twin, and what a cosine to ±1 targets does not see."""

import numpy as np
import pytest
import torch

from oracles.centres import cosine_loss, hamming
from rankbits.methods.deep.hash_centers import HashTargets, build_centers
from rankbits.methods.deep.orthohash import CosineLoss, _cosines
from rankbits.methods.training.batches import Batch

LOGITS = torch.from_numpy(np.random.default_rng(3).normal(size=(9, 12)))
CENTRES = build_centers(4, 12, 0).tolist()
CLASSES = np.arange(9) % 4


def loss_of(margin, scale):
    return CosineLoss(HashTargets(4, 12, 0), margin, scale)


def by_class(alpha=1.0):
    return Batch(np.arange(9), torch.zeros(9, 9), alpha, classes=torch.from_numpy(CLASSES))


@pytest.mark.parametrize(("margin", "scale"), [(0.0, 1.0), (0.2, 8.0), (0.5, 20.0)])
def test_the_loss_of_classes_is_that_of_plain_loops(margin, scale):
    found = loss_of(margin, scale)(LOGITS, by_class())
    expected = cosine_loss(LOGITS.tolist(), [[c] for c in CLASSES], CENTRES, margin, scale)
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_tags_share_the_target_and_rows_without_any_do_not_count():
    tags = np.random.default_rng(0).integers(0, 2, (9, 4))
    tags[2] = 0
    batch = Batch(np.arange(9), torch.zeros(9, 9), 1.0, tags=torch.from_numpy(tags))
    own = [np.flatnonzero(row).tolist() for row in tags]
    assert max(map(len, own)) > 1
    expected = cosine_loss(LOGITS.tolist(), own, CENTRES, 0.2, 8.0)
    assert float(loss_of(0.2, 8.0)(LOGITS, batch)) == pytest.approx(expected, abs=1e-12)


def test_the_length_of_the_logits_does_not_count():
    loss = loss_of(0.2, 8.0)
    lengths = torch.linspace(0.1, 30.0, 9, dtype=torch.float64)[:, None]
    assert float(loss(lengths * LOGITS, by_class())) == pytest.approx(
        float(loss(LOGITS, by_class())), abs=1e-12
    )


def test_a_cosine_at_codes_is_the_hamming_distance():
    codes = torch.where(LOGITS > 0, 1.0, -1.0).double()
    found = _cosines(3 * codes, torch.tensor(CENTRES, dtype=torch.float64), 1.0)
    for row, cosines in zip(codes.tolist(), found.tolist(), strict=True):
        wanted = [1 - 2 * hamming(row, centre) / 12 for centre in CENTRES]
        assert cosines == pytest.approx(wanted, abs=1e-12)


def test_a_margin_costs_and_a_single_bit_still_has_a_gradient():
    assert loss_of(0.3, 8.0)(LOGITS, by_class()) > loss_of(0.0, 8.0)(LOGITS, by_class())
    logits = torch.full((2, 1), 0.1, requires_grad=True)
    batch = Batch(np.arange(2), torch.zeros(2, 2), 1.0, classes=torch.tensor([0, 1]))
    loss = CosineLoss(HashTargets(2, 1, 0), 0.0, 1.0)
    loss(logits, batch).backward()
    sides = loss.targets.centers[:, 0]
    assert torch.equal(torch.sign(-logits.grad[:, 0]), sides)
