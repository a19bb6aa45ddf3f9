"""DTSH: the likelihood of triplets, read from the tie histogram and counted one by one."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oracles import pairwise
from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods.deep.dtsh import DTSHLoss
from rankbits.methods.training.batches import Batch

RNG = np.random.default_rng(14)
Y = np.arange(240) % 4
X = (RNG.normal(size=(4, 12)) * 3)[Y] + RNG.normal(size=(240, 12))


def batch_of(levels, alpha=0.7, **gallery):
    return Batch(np.arange(len(levels)), torch.as_tensor(levels), alpha, **gallery)


def both(logits, levels, margin, eta):
    """The loss of a batch, and the sum over its triplets."""
    phi, similar = np.tanh(0.7 * logits).tolist(), (levels > 0).astype(int).tolist()
    n, n_bits = logits.shape
    slow = pairwise.dtsh(phi, phi, similar, range(n), margin * n_bits, eta)
    return float(DTSHLoss(margin, eta)(torch.from_numpy(logits), batch_of(levels))), slow


@given(st.integers(0, 10**6), st.integers(1, 7), st.sampled_from([0.0, 0.25, 0.5]))
def test_at_binary_codes_the_loss_is_the_mean_over_triplets(seed, n_bits, margin):
    rng = np.random.default_rng(seed)
    logits = 99.0 * (2.0 * rng.integers(0, 2, (7, n_bits)) - 1)
    found, slow = both(logits, rng.integers(0, 3, (7, 7)), margin, 0.2)
    assert found == pytest.approx(slow, abs=1e-9)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.25, 0.5]))
def test_between_binary_codes_it_lies_above_it_by_a_sixteenth_at_most(seed, margin):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(8, 6)) * 3 * rng.random()
    found, slow = both(logits, rng.integers(0, 2, (8, 8)), margin, 0.2)
    assert -1e-9 <= found - slow <= 1 / 16


def test_a_gallery_is_ranked_without_the_query_itself():
    rng = np.random.default_rng(1)
    codes, others = (2.0 * rng.integers(0, 2, (n, 5)) - 1 for n in (4, 8))
    own, levels = torch.tensor([3, -1, 0, 7]), rng.integers(0, 2, (4, 8))
    slow = pairwise.dtsh(codes.tolist(), others.tolist(), levels.tolist(), own.tolist(), 1.5, 0)
    gallery = torch.from_numpy(99 * others)
    batch = batch_of(levels, gallery=gallery, own=own)
    found = DTSHLoss(0.3, 0.0)(torch.from_numpy(99 * codes), batch)
    assert float(found) == pytest.approx(slow, abs=1e-9)


def test_the_gradient_is_that_of_the_value():
    logits = torch.from_numpy(np.random.default_rng(2).normal(size=(7, 5))).requires_grad_()
    batch = batch_of(np.random.default_rng(3).integers(0, 2, (7, 7)))
    assert torch.autograd.gradcheck(lambda f: DTSHLoss(0.25, 0.3)(f, batch), logits)


@pytest.mark.parametrize("level", [0, 1])
def test_a_batch_without_triplets_has_no_loss_and_a_gradient_of_0(level):
    logits = torch.randn(5, 4, requires_grad=True)
    loss = DTSHLoss(0.25, 0.0)(logits, batch_of(np.full((5, 5), level)))
    loss.backward()
    assert float(loss.detach()) == 0
    assert not logits.grad.any()


@pytest.mark.parametrize("name", ["margin", "eta"])
def test_parameters_out_of_range_are_refused(name):
    with pytest.raises(InputError, match=f"{name} must be a finite number, 0 or more, got -0.5"):
        methods.get("dtsh", **{name: -0.5}).fit(X, Y)
