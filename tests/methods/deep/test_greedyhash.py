"""GreedyHash's loss against its slow twin, and its gradient, which passes straight through."""

import numpy as np
import pytest
import torch

from oracles.centres import greedy_loss
from rankbits.methods.deep.greedyhash import GreedyLoss, straight_through
from rankbits.methods.training.batches import Batch

LOGITS = torch.from_numpy(np.random.default_rng(3).normal(size=(9, 12)))
CLASSES = np.arange(9) % 4


def loss_of(penalty):
    loss = GreedyLoss(4, 12, penalty).double()
    with torch.no_grad():
        loss.bias.copy_(torch.linspace(-0.5, 0.5, 4))
    return loss


def by_class():
    return Batch(np.arange(9), torch.zeros(9, 9), 1.0, classes=torch.from_numpy(CLASSES))


def expected(loss, logits, own, *, is_tags):
    weight, bias = loss.weight.tolist(), loss.bias.tolist()
    return greedy_loss(logits.tolist(), own, weight, bias, loss.penalty, is_tags=is_tags)


@pytest.mark.parametrize("penalty", [0.0, 0.1, 2.0])
def test_the_loss_of_classes_is_that_of_plain_loops(penalty):
    loss = loss_of(penalty)
    wanted = expected(loss, LOGITS, [[c] for c in CLASSES], is_tags=False)
    assert loss(LOGITS, by_class()).item() == pytest.approx(wanted, abs=1e-12)


def test_the_loss_of_tags_is_that_of_a_classifier_each():
    tags = np.random.default_rng(0).integers(0, 2, (9, 4))
    batch = Batch(np.arange(9), torch.zeros(9, 9), 1.0, tags=torch.from_numpy(tags))
    loss = loss_of(0.1)
    own = [np.flatnonzero(row).tolist() for row in tags]
    wanted = expected(loss, LOGITS, own, is_tags=True)
    assert loss(LOGITS, batch).item() == pytest.approx(wanted, abs=1e-12)


def test_signs_are_exact_and_their_gradient_is_that_of_the_logits():
    logits = torch.tensor([[1e-30, -0.3, 0.0, 1e30, -2.0]], requires_grad=True)
    signs = straight_through(logits)
    assert signs.tolist() == [[1.0, -1.0, -1.0, 1.0, -1.0]]
    weights = torch.tensor([[1.0, 2.0, -3.0, 4.0, 5.0]])
    (signs * weights).sum().backward()
    assert torch.equal(logits.grad, weights)


def test_the_gradient_of_the_logits_is_the_classifiers_at_the_signs_and_the_cubic_penaltys():
    """By hand: W^T (softmax - one-hot)/M at the signs, and 3 λ (f - s)|f - s| / (M b)."""
    loss, logits = loss_of(0.4), LOGITS.clone().requires_grad_()
    loss(logits, by_class()).backward()
    signs = np.where(LOGITS.numpy() > 0, 1.0, -1.0)
    weight = loss.weight.detach().numpy()
    scores = np.exp(signs @ weight.T + loss.bias.detach().numpy())
    wrong = scores / scores.sum(axis=1, keepdims=True) - np.eye(4)[CLASSES]
    gaps = LOGITS.numpy() - signs
    wanted = wrong @ weight / 9 + 3 * 0.4 * gaps * np.abs(gaps) / (9 * 12)
    np.testing.assert_allclose(logits.grad.numpy(), wanted, rtol=0, atol=1e-12)
    assert np.abs(loss.weight.grad.numpy() - wrong.T @ signs / 9).max() < 1e-12


def test_the_classifier_is_trained_with_the_encoder():
    names = [name for name, weight in loss_of(0.1).named_parameters() if weight.requires_grad]
    assert names == ["weight", "bias"]
