"""DPSH: the likelihood of pairs, counted pair by pair."""

import numpy as np
import pytest
import torch

from oracles import pairwise
from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods.deep.dpsh import DPSHLoss
from rankbits.methods.training.batches import Batch

RNG = np.random.default_rng(13)
Y = np.arange(240) % 4
X = (RNG.normal(size=(4, 12)) * 3)[Y] + RNG.normal(size=(240, 12))


def batch_of(levels, alpha=0.7, **gallery):
    return Batch(np.arange(len(levels)), torch.as_tensor(levels), alpha, **gallery)


@pytest.mark.parametrize("n_bits", [1, 6])
@pytest.mark.parametrize("bounded", [True, False])
def test_the_loss_is_the_mean_over_pairs_and_bits(n_bits, bounded):
    rng = np.random.default_rng(0)
    logits, levels = torch.from_numpy(rng.normal(size=(9, n_bits))), rng.integers(0, 3, (9, 9))
    u, similar = 0.7 * logits.numpy(), (levels > 0).astype(int).tolist()
    u = (np.tanh(u) if bounded else u).tolist()
    expected = pairwise.dpsh(u, u, similar, range(9), eta=0.3, factor=5.0 / n_bits)
    found = DPSHLoss(5.0, 0.3, bounded)(logits, batch_of(levels))
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_a_slope_of_half_the_bits_is_the_paper_s_inner_product():
    rng = np.random.default_rng(1)
    logits, levels = torch.from_numpy(rng.normal(size=(6, 10))), rng.integers(0, 2, (6, 6))
    u = logits.tolist()
    expected = pairwise.dpsh(u, u, levels.tolist(), range(6), eta=0.0)  # u · u / 2
    found = DPSHLoss(5.0, 0.0, False)(logits, batch_of(levels, alpha=1.0))
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_a_gallery_is_paired_without_the_row_itself():
    rng = np.random.default_rng(2)
    logits, others = (torch.from_numpy(rng.normal(size=(n, 5))) for n in (4, 8))
    own, levels = torch.tensor([3, -1, 0, 7]), rng.integers(0, 2, (4, 8))
    u, items = (np.tanh(0.7 * f.numpy()).tolist() for f in (logits, others))
    expected = pairwise.dpsh(u, items, levels.tolist(), own.tolist(), eta=0.2, factor=0.8)
    batch = batch_of(levels, gallery=others, own=own)
    assert float(DPSHLoss(4.0, 0.2, True)(logits, batch)) == pytest.approx(expected, abs=1e-12)


def test_the_gradient_is_that_of_the_value():
    logits = torch.from_numpy(np.random.default_rng(3).normal(size=(7, 5))).requires_grad_()
    batch = batch_of(np.random.default_rng(4).integers(0, 2, (7, 7)))
    assert torch.autograd.gradcheck(lambda f: DPSHLoss(4.0, 0.3, True)(f, batch), logits)


def test_large_logits_neither_overflow_nor_lose_their_gradient():
    """Two equal rows said to be dissimilar: the loss is Θ itself, 4e8 at logits of 1e4."""
    logits = torch.full((2, 3), 1e4, requires_grad=True)
    loss = DPSHLoss(4.0, 0.0, False)(logits, batch_of(np.zeros((2, 2), int), alpha=1.0))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(4e8)
    assert logits.grad.isfinite().all()
    assert (logits.grad > 0).all()


def test_codes_of_one_have_no_quantization_error():
    codes = torch.where(torch.rand(6, 4) > 0.5, 1.0, -1.0)
    batch = batch_of(np.eye(6, dtype=int), alpha=1.0)
    one, other = (DPSHLoss(4.0, eta, False)(codes, batch) for eta in (0.0, 9.0))
    assert torch.equal(one, other)


def test_a_batch_of_one_row_has_a_finite_loss():
    logits = torch.randn(1, 4, requires_grad=True)
    loss = DPSHLoss(4.0, 0.0, True)(logits, batch_of([[1]]))
    loss.backward()
    assert float(loss.detach()) == 0
    assert not logits.grad.any()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"eta": -1.0}, "eta must be a finite number, 0 or more, got -1.0"),
        ({"eta": "much"}, "eta must be a finite number, 0 or more, got str 'much'"),
        ({"slope": 0}, "slope must be a finite number above 0, got 0"),
        ({"slope": float("inf")}, "slope must be a finite number above 0, got inf"),
        ({"slope": True}, "slope must be a finite number above 0, got bool True"),
    ],
)
def test_parameters_out_of_range_are_refused(params, words):
    with pytest.raises(InputError, match=words):
        methods.get("dpsh", **params).fit(X, Y)
