"""MIHash: its loss is minus the mutual information of distance and relevance, counted by hand."""

import math

import numpy as np
import pytest
import torch

from oracles import pairwise
from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods.deep.mihash import MIHashLoss, mutual_information
from rankbits.methods.deep.soft_histograms import count_binary_ties
from rankbits.methods.training.batches import Batch

RNG = np.random.default_rng(12)
Y = np.arange(240) % 4
X = (RNG.normal(size=(4, 12)) * 3)[Y] + RNG.normal(size=(240, 12))


def batch_of(levels, alpha=0.7, **gallery):
    return Batch(np.arange(len(levels)), torch.as_tensor(levels), alpha, **gallery)


@pytest.mark.parametrize("n_bins", [None, 3])
def test_the_loss_is_the_sum_over_cells_of_the_joint_law(n_bins):
    rng = np.random.default_rng(0)
    logits, levels = torch.from_numpy(rng.normal(size=(9, 6))), rng.integers(0, 3, (9, 9))
    levels[4] = 0  # a query without relevant items
    phi, similar = np.tanh(0.7 * logits.numpy()).tolist(), (levels > 0).astype(int).tolist()
    expected = pairwise.mihash(phi, phi, similar, range(9), n_bins or 6)
    assert float(MIHashLoss(n_bins)(logits, batch_of(levels))) == pytest.approx(expected, abs=1e-9)


def test_a_gallery_is_ranked_without_the_query_itself():
    rng = np.random.default_rng(1)
    logits, others = (torch.from_numpy(rng.normal(size=(n, 5))) for n in (4, 8))
    own, levels = torch.tensor([3, -1, 0, 7]), rng.integers(0, 2, (4, 8))
    phi, items = (np.tanh(0.7 * f.numpy()).tolist() for f in (logits, others))
    expected = pairwise.mihash(phi, items, levels.tolist(), own.tolist(), 5)
    batch = batch_of(levels, gallery=others, own=own)
    assert float(MIHashLoss(None)(logits, batch)) == pytest.approx(expected, abs=1e-9)


def test_distances_that_tell_all_carry_the_entropy_of_relevance_and_none_carry_nothing():
    """Three of a kind against two: a query of the three has 2 of 4 items relevant, of the two 1."""
    kinds = torch.tensor([0, 0, 0, 1, 1])
    batch = batch_of(kinds[:, None] == kinds, alpha=1.0)
    telling = torch.where(kinds > 0, 1.0, -1.0)[:, None].double()
    half, quarter = math.log(2), -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    found = mutual_information(count_binary_ties(telling, batch)).tolist()
    assert found == pytest.approx([half, half, half, quarter, quarter], abs=1e-9)
    flat = mutual_information(count_binary_ties(torch.ones_like(telling), batch))
    assert flat.tolist() == pytest.approx([0.0] * 5, abs=1e-9)


def test_the_gradient_is_that_of_the_value():
    logits = torch.from_numpy(np.random.default_rng(2).normal(size=(7, 5))).requires_grad_()
    batch = batch_of(np.random.default_rng(3).integers(0, 2, (7, 7)))
    assert torch.autograd.gradcheck(lambda f: MIHashLoss(None)(f, batch), logits)


@pytest.mark.parametrize("level", [0, 1])
def test_a_batch_of_one_kind_of_pairs_has_no_loss_and_a_gradient_of_0(level):
    logits = torch.randn(5, 4, requires_grad=True)
    loss = MIHashLoss(None)(logits, batch_of(np.full((5, 5), level)))
    loss.backward()
    assert float(loss.detach()) == 0
    assert not logits.grad.any()


def test_saturated_codes_have_a_finite_gradient():
    logits = (100 * torch.where(torch.rand(12, 6) > 0.5, 1.0, -1.0)).requires_grad_()
    MIHashLoss(None)(logits, batch_of(np.arange(12)[:, None] % 2 == np.arange(12) % 2)).backward()
    assert logits.grad.isfinite().all()


def test_nothing_relevant_is_counted_as_no_relevant_items():
    counts = count_binary_ties(torch.zeros(3, 4), batch_of(np.zeros((3, 3), int)))
    assert counts.sum(1).tolist() == [[2, 0]] * 3


def test_long_codes_have_a_bin_for_two_bits_unless_asked_otherwise():
    for n_bits, n_bins, used in ((23, "auto", None), (24, "auto", 12), (49, "auto", 24),
                                 (48, None, None), (8, 5, 5)):  # fmt: skip
        hasher = methods.get("mihash", n_bits=n_bits, n_bins=n_bins)
        assert hasher._build_loss(None).n_bins == used
        assert hasher._loss_settings() == {"n_bins": used}


@pytest.mark.parametrize("n_bins", [0, 2.5, "many"])
def test_a_number_of_bins_that_is_none_is_refused(n_bins):
    with pytest.raises(InputError, match="n_bins must be an integer from 1 to 4096"):
        methods.get("mihash", n_bins=n_bins).fit(X, Y)
