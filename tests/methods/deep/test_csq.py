"""CSQ's loss against its slow twin, and codes that end at the centres."""

import numpy as np
import pytest
import torch

from oracles.centres import central_loss, hamming, majority
from rankbits import methods
from rankbits.methods.deep.csq import CentralLoss
from rankbits.methods.deep.hash_centers import HashTargets, build_centers
from rankbits.methods.training.batches import Batch

LOGITS = torch.from_numpy(np.random.default_rng(3).normal(size=(9, 12)))
CENTRES = build_centers(4, 12, 0).tolist()


def loss_of(quantization):
    return CentralLoss(HashTargets(4, 12, 0), quantization)


@pytest.mark.parametrize("alpha", [0.5, 3.0])
@pytest.mark.parametrize("quantization", [0.0, 0.7])
def test_the_loss_of_classes_is_that_of_plain_loops(alpha, quantization):
    classes = np.arange(9) % 4
    batch = Batch(np.arange(9), torch.zeros(9, 9), alpha, classes=torch.from_numpy(classes))
    found = loss_of(quantization)(LOGITS, batch)
    targets = [CENTRES[c] for c in classes]
    expected = central_loss(LOGITS.tolist(), targets, alpha, quantization)
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_the_loss_of_tags_counts_rows_that_have_some():
    tags = np.random.default_rng(0).integers(0, 2, (9, 4))
    tags[4] = 0
    batch = Batch(np.arange(9), torch.zeros(9, 9), 1.0, tags=torch.from_numpy(tags))
    loss = loss_of(0.3)
    targets = [majority(row, CENTRES, loss.targets.ties.tolist()) for row in tags]
    assert targets[4] is None
    expected = central_loss(LOGITS.tolist(), targets, 1.0, 0.3)
    assert float(loss(LOGITS, batch)) == pytest.approx(expected, abs=1e-12)


def test_soft_bits_cost_more_the_softer_they_are():
    batch = Batch(np.arange(1), torch.zeros(1, 1), 1.0, classes=torch.tensor([0]))
    signs = torch.tensor(CENTRES[:1], dtype=torch.float64)
    costs = []
    for size in (0.0, 0.5, 1.0, 20.0):
        both = [float(loss_of(q)(size * signs, batch)) for q in (1.0, 0.0)]
        costs.append(both[0] - both[1])
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == pytest.approx(np.log(np.cosh(1.0)))
    assert costs[-1] == pytest.approx(0.0, abs=1e-9)


def test_codes_end_at_the_centre_of_their_class():
    y = np.arange(300) % 5
    rng = np.random.default_rng(2)
    x = (rng.normal(size=(5, 10)) * 4)[y] + rng.normal(size=(300, 10))
    hasher = methods.get("csq", n_bits=16, n_threads=1, random_state=1).fit(x, y)
    wanted = build_centers(5, 16, 0)[y]
    apart = [hamming(*pair) for pair in zip(hasher.encode(x).bits(), wanted > 0, strict=True)]
    assert np.mean(apart) < 0.2
