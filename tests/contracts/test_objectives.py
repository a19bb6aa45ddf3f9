"""What every ranking objective promises, whatever its metric and its relaxation."""

import numpy as np
import pytest
import torch

import rankbits
from rankbits import objectives

FORMS = [("ap", form) for form in objectives.RELAXATIONS]
FORMS += [("ndcg", form) for form in objectives.RELAXATIONS if form != "cvpr"]
OBJECTIVES = {"ap": objectives.relaxed_ap, "ndcg": objectives.relaxed_ndcg}
METRICS = {"ap": rankbits.metrics.average_precision, "ndcg": rankbits.metrics.ndcg}
EVERY_FORM = pytest.mark.parametrize(("metric", "form"), FORMS)


def draw(n=23, n_bits=9, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, n_bits, generator=generator, dtype=dtype)
    levels = torch.randint(0, 4, (n, n), generator=generator)
    levels[:, 0] = 1  # every query has something relevant
    levels[0, 1] = 1
    return torch.tanh(logits), levels


@pytest.mark.parametrize("metric", OBJECTIVES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_exact_form_at_hard_codes_is_the_tie_aware_metric(metric, dtype):
    phi, levels = draw(dtype=dtype)
    codes = rankbits.BinaryCodes.from_logits(phi.numpy())
    affinity = rankbits.affinity.levels(levels.numpy())
    hist = rankbits.count_ties(codes, codes, affinity, exclude_self=True)
    values = OBJECTIVES[metric](torch.where(phi > 0, 1.0, -1.0).to(dtype), levels)
    np.testing.assert_allclose(values.numpy(), METRICS[metric](hist), rtol=1e-6)


@EVERY_FORM
def test_the_gradient_is_that_of_the_value(metric, form):
    phi, levels = draw(n=7, n_bits=5)
    assert torch.autograd.gradcheck(
        lambda codes: OBJECTIVES[metric](codes, levels, form), phi.requires_grad_()
    )


@EVERY_FORM
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_order_of_the_batch_does_not_matter(metric, form, dtype):
    phi, levels = draw(n=60, dtype=dtype)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    values = OBJECTIVES[metric](phi, levels, form)
    permuted = OBJECTIVES[metric](phi[order], levels[order][:, order], form)
    torch.testing.assert_close(permuted, values[order], rtol=2e-5, atol=1e-6)


@EVERY_FORM
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_batch_as_its_own_gallery_is_the_batch(metric, form, dtype):
    phi, levels = draw(n=60, dtype=dtype)
    codes, queries, gallery = (phi.clone().requires_grad_() for _ in range(3))
    batch = OBJECTIVES[metric](codes, levels, form)
    listed = OBJECTIVES[metric](queries, levels, form, gallery=gallery, own=torch.arange(60))
    torch.testing.assert_close(listed, batch, rtol=1e-6, atol=1e-6)
    batch.sum().backward()
    listed.sum().backward()
    gradient = queries.grad + gallery.grad
    assert (gradient - codes.grad).norm() < 1e-5 * codes.grad.norm()


@EVERY_FORM
def test_only_a_query_without_relevant_items_is_nan(metric, form):
    phi, levels = draw()
    levels[3] = 0
    levels[5] = 0
    levels[5, 5] = 2  # itself, which never counts
    is_nan = OBJECTIVES[metric](phi, levels, form).isnan()
    assert is_nan.nonzero().flatten().tolist() == [3, 5]


@EVERY_FORM
@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.uint16, torch.bool]
)
def test_levels_of_any_integer_type_give_the_same_numbers(metric, form, precision, dtype):
    phi, levels = draw(n=60, dtype=precision)
    if dtype == torch.bool:
        levels = (levels > 0).long()
    results = []
    for given in (levels, levels.to(dtype)):
        codes = phi.clone().requires_grad_()
        values = OBJECTIVES[metric](codes, given, form)
        values.sum().backward()
        results.append((values.detach(), codes.grad))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


@EVERY_FORM
def test_each_query_is_weighted_by_its_own_upstream_gradient(metric, form):
    phi, levels = draw(n=60, dtype=torch.float32)
    weights = torch.linspace(-1, 2, 60)
    whole = phi.clone().requires_grad_()
    (weights * OBJECTIVES[metric](whole, levels, form)).sum().backward()
    one_by_one = torch.zeros_like(phi)
    for query, weight in enumerate(weights):
        codes = phi.clone().requires_grad_()
        OBJECTIVES[metric](codes, levels, form)[query].backward()
        one_by_one += weight * codes.grad
    assert (whole.grad - one_by_one).norm() < 1e-5 * one_by_one.norm()
