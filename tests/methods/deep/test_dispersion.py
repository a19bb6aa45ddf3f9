"""Penalties on crowded codes: what they count, that they spread codes, and TALR's use of them."""

from itertools import combinations

import numpy as np
import pytest
import torch

from rankbits import methods, objectives
from rankbits.errors import InputError
from rankbits.methods.deep.dispersion import (
    KINDS,
    bit_correlation,
    dispersion_penalty,
    soft_collisions,
)
from rankbits.methods.training.batches import Batch

RNG = np.random.default_rng(4)


def hard(n, n_bits, rng=RNG):
    return torch.from_numpy(rng.choice([-1.0, 1.0], (n, n_bits)))


def soft(n, n_bits):
    return torch.from_numpy(RNG.uniform(-1, 1, (n, n_bits)))


def test_collisions_of_binary_codes_are_the_share_of_pairs_on_one_code():
    codes = hard(40, 4)
    shared = [torch.equal(a, b) for a, b in combinations(codes, 2)]
    assert 0 < sum(shared) < len(shared)
    assert float(soft_collisions(codes)) == pytest.approx(np.mean(shared))


def test_collisions_with_a_gallery_leave_out_a_rows_own_place():
    codes, gallery, own = hard(12, 3), hard(30, 3), [-1, *range(11)]
    gallery[:11] = codes[1:]
    pairs = [torch.equal(codes[i], gallery[j]) for i in range(12) for j in range(30) if j != own[i]]
    found = soft_collisions(codes, gallery, torch.tensor(own))
    assert float(found) == pytest.approx(np.mean(pairs))


def test_relaxed_codes_collide_as_far_as_they_are_less_than_a_bit_apart():
    phi = torch.tensor([[0.6, 0.0], [0.0, 0.2], [0.3, 0.4]], dtype=torch.float64)
    # cosines 0, 0.6 and 0.8 of two bits: distances 1, 0.4 and 0.2
    assert float(soft_collisions(phi)) == pytest.approx((0 + 0.6 + 0.8) / 3)
    assert float(soft_collisions(0.1 * phi)) == pytest.approx((0 + 0.6 + 0.8) / 3)


def test_correlation_is_the_mean_square_over_pairs_of_bits():
    phi = soft(50, 6)
    phi[:, 3] = 0.5 * phi[:, 0] + 0.2
    squares = np.corrcoef(phi.numpy().T) ** 2
    wanted = np.mean([squares[i, j] for i, j in combinations(range(6), 2)])
    assert float(bit_correlation(phi)) == pytest.approx(wanted)


def test_a_constant_bit_is_correlated_with_none():
    phi = soft(50, 3)
    wanted = np.corrcoef(phi[:, 0], phi[:, 2])[0, 1] ** 2 / 3
    phi[:, 1] = 1.0
    assert float(bit_correlation(phi)) == pytest.approx(wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_values(kind):
    phi = soft(7, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda codes: dispersion_penalty(kind, codes), phi)


@pytest.mark.parametrize("kind", KINDS)
def test_descending_spreads_codes_that_crowd(kind):
    torch.manual_seed(0)
    logits = (0.3 + 0.3 * torch.randn(60, 1) + 0.1 * torch.randn(60, 6)).requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=0.05)
    before = len(torch.unique(logits > 0, dim=0))
    for _ in range(100):
        optimizer.zero_grad()
        dispersion_penalty(kind, torch.tanh(4 * logits)).backward()
        optimizer.step()
    assert len(torch.unique(logits > 0, dim=0)) > 1.3 * before


@pytest.mark.parametrize("shape", [(1, 4), (5, 1), (1, 1)])
@pytest.mark.parametrize("kind", KINDS)
def test_one_row_or_one_bit_has_a_finite_value_and_a_gradient_path(kind, shape):
    logits = torch.randn(shape, requires_grad=True)
    value = dispersion_penalty(kind, torch.tanh(logits))
    value.backward()
    assert torch.isfinite(value.detach())
    assert torch.isfinite(logits.grad).all()
    if shape != (5, 1) or kind == "correlation":
        assert value.detach() == 0


LEVELS = torch.from_numpy(RNG.integers(0, 3, (30, 40)))
LOGITS = torch.from_numpy(RNG.normal(size=(30, 8))).abs()
GALLERY = torch.cat([LOGITS.flip(1), torch.from_numpy(RNG.normal(size=(10, 8)))])
OWN = torch.arange(30)


def listed(gallery):
    """Levels of the list that is ranked, and its codes and own rows if it is a gallery."""
    if not gallery:
        return LEVELS[:, :30], {}
    return LEVELS, {"gallery": torch.tanh(2.0 * GALLERY), "own": OWN}


def value_and_gradient(name, gallery, **params):
    logits = LOGITS.clone().requires_grad_()
    kept = {"gallery": GALLERY, "own": OWN} if gallery else {}
    batch = Batch(np.arange(30), listed(gallery)[0], 2.0, **kept)
    loss = methods.get(name, n_bits=8, **params)._build_loss(None)(logits, batch)
    loss.backward()
    return loss.detach(), logits.grad


@pytest.mark.parametrize("gallery", [False, True])
@pytest.mark.parametrize(
    ("name", "relaxed"),
    [("talr-ap", objectives.relaxed_ap), ("talr-ndcg", objectives.relaxed_ndcg)],
)
def test_talr_without_dispersion_is_the_objective_bit_for_bit(name, relaxed, gallery):
    logits = LOGITS.clone().requires_grad_()
    levels, where = listed(gallery)
    wanted = 1 - objectives.mean_over_queries(relaxed(torch.tanh(2.0 * logits), levels, **where))
    wanted.backward()
    for params in ({}, {"dispersion": 0.0, "dispersion_kind": "correlation"}):
        loss, gradient = value_and_gradient(name, gallery, **params)
        assert loss == wanted.detach()
        assert torch.equal(gradient, logits.grad)


@pytest.mark.parametrize("gallery", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["talr-ap", "talr-ndcg"])
def test_talr_adds_the_weighted_penalty(name, kind, gallery):
    extra = dispersion_penalty(kind, torch.tanh(2.0 * LOGITS), **listed(gallery)[1])
    base, _ = value_and_gradient(name, gallery)
    loss, _ = value_and_gradient(name, gallery, dispersion=0.25, dispersion_kind=kind)
    assert extra > 0
    assert float(loss - base) == pytest.approx(0.25 * float(extra))


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"dispersion": -0.1}, "dispersion must be a finite number, 0 or more, got -0.1"),
        ({"dispersion": float("nan")}, "dispersion must be a finite number"),
        ({"dispersion": True}, "dispersion must be a finite number, 0 or more, got bool True"),
        ({"dispersion": "much"}, "dispersion must be a finite number"),
        ({"dispersion_kind": "collision"}, "did you mean 'collisions'"),
    ],
)
def test_a_weight_or_kind_that_is_none_is_refused_before_any_work(params, says):
    x, y = RNG.normal(size=(40, 5)), np.arange(40) % 2
    with pytest.raises(InputError, match=says):
        methods.get("talr-ap", n_bits=4, **params).fit(x, y)
