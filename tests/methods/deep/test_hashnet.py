"""HashNet: weighted likelihood of pairs, counted pair by pair, and its continuation."""

import numpy as np
import pytest
import torch

from oracles import pairwise
from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods.deep.hashnet import HashNetLoss, balancing_weights
from rankbits.methods.deep.pairs import find_pairs
from rankbits.methods.training.batches import Batch

RNG = np.random.default_rng(15)
Y = np.arange(240) % 4
X = (RNG.normal(size=(4, 12)) * 3)[Y] + RNG.normal(size=(240, 12))


def batch_of(levels, alpha=0.7, **more):
    return Batch(np.arange(len(levels)), torch.as_tensor(levels), alpha, **more)


def test_the_loss_is_the_weighted_mean_over_pairs():
    rng = np.random.default_rng(0)
    logits, levels = torch.from_numpy(rng.normal(size=(9, 6))), rng.integers(0, 3, (9, 9))
    phi, similar = np.tanh(0.7 * logits.numpy()).tolist(), (levels > 0).astype(int).tolist()
    expected = pairwise.hashnet(phi, phi, similar, range(9), slope=5.0)
    found = HashNetLoss(5.0, True)(logits, batch_of(levels))
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_without_balance_it_is_the_likelihood_of_dpsh_at_bounded_codes():
    rng = np.random.default_rng(1)
    logits, levels = torch.from_numpy(rng.normal(size=(9, 6))), rng.integers(0, 2, (9, 9))
    phi = np.tanh(0.7 * logits.numpy()).tolist()
    expected = pairwise.dpsh(phi, phi, levels.tolist(), range(9), eta=0.0, factor=5.0 / 6)
    found = HashNetLoss(5.0, False)(logits, batch_of(levels))
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_similar_pairs_of_rows_with_tags_weigh_by_the_tags_they_share():
    rng = np.random.default_rng(2)
    tags = rng.integers(0, 2, (8, 5))
    tags[3] = 0  # a row without tags
    logits, levels = torch.from_numpy(rng.normal(size=(8, 6))), (tags @ tags.T > 0).astype(int)
    some = np.where(tags.any(axis=1)[:, None], tags, 1)  # the oracle divides by the union
    shares = [[pairwise.jaccard(one, other) for other in some] for one in some]
    phi = np.tanh(0.7 * logits.numpy()).tolist()
    expected = pairwise.hashnet(phi, phi, levels.tolist(), range(8), 5.0, overlap=shares)
    batch = batch_of(levels, tags=torch.from_numpy(tags))
    assert float(HashNetLoss(5.0, True)(logits, batch)) == pytest.approx(expected, abs=1e-12)


def test_a_gallery_is_paired_without_the_row_itself():
    rng = np.random.default_rng(3)
    logits, others = (torch.from_numpy(rng.normal(size=(n, 5))) for n in (4, 8))
    own, levels = torch.tensor([3, -1, 0, 7]), rng.integers(0, 2, (4, 8))
    phi, items = (np.tanh(0.7 * f.numpy()).tolist() for f in (logits, others))
    expected = pairwise.hashnet(phi, items, levels.tolist(), own.tolist(), slope=4.0)
    batch = batch_of(levels, gallery=others, own=own)
    assert float(HashNetLoss(4.0, True)(logits, batch)) == pytest.approx(expected, abs=1e-12)


def test_either_kind_of_pairs_weighs_as_much_as_all_pairs():
    levels = np.zeros((30, 30), int)
    levels[:2, 5:8] = 1
    pairs = find_pairs(torch.zeros(30, 4), batch_of(levels))
    weights = balancing_weights(pairs).numpy()
    assert weights[levels == 1].sum() == pytest.approx(30 * 29)
    assert weights[levels == 0].sum() == pytest.approx(30 * 29)
    assert not weights.diagonal().any()


def test_the_gradient_is_that_of_the_value():
    logits = torch.from_numpy(np.random.default_rng(4).normal(size=(7, 5))).requires_grad_()
    batch = batch_of(np.random.default_rng(5).integers(0, 2, (7, 7)))
    assert torch.autograd.gradcheck(lambda f: HashNetLoss(6.0, True)(f, batch), logits)


@pytest.mark.parametrize("level", [0, 1])
def test_a_batch_of_one_kind_of_pairs_has_a_finite_gradient(level):
    logits = torch.randn(5, 4, requires_grad=True)
    HashNetLoss(10.0, True)(logits, batch_of(np.full((5, 5), level))).backward()
    assert logits.grad.isfinite().all()
    assert logits.grad.any()


@pytest.mark.parametrize("slope", [0, -2.0, "steep"])
def test_a_slope_that_is_none_is_refused(slope):
    with pytest.raises(InputError, match="slope must be a finite number above 0"):
        methods.get("hashnet", slope=slope).fit(X, Y)
