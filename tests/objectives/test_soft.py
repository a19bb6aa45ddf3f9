"""The soft tie histogram: mass, hard codes, width and gradients."""

import numpy as np
import pytest
import torch

import rankbits
from oracles import objectives as dense
from rankbits import objectives


def batch(n, n_bits, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    phi = torch.tanh(torch.randn(n, n_bits, generator=generator, dtype=dtype))
    return phi, torch.randint(0, 4, (n, n), generator=generator)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_bins", [None, 4, 7])
def test_the_mass_of_a_query_is_the_number_of_its_items(dtype, n_bins):
    for n in (2, 49, 130):
        phi, levels = batch(n, 16, dtype)
        counts = objectives.soft_ties(phi, levels, n_bins)
        bins = 16 if n_bins is None else n_bins
        assert counts.shape[:2] == (n, bins + 1)
        assert counts.sum((1, 2)).tolist() == pytest.approx([n - 1] * n, rel=1e-6)


def test_at_hard_codes_the_counts_are_those_of_count_ties():
    phi, levels = batch(90, 10, torch.float32)
    hard = torch.where(phi > 0, 1.0, -1.0)
    codes = rankbits.BinaryCodes.from_logits(phi.numpy())
    affinity = rankbits.affinity.levels(levels.numpy())
    hist = rankbits.count_ties(codes, codes, affinity, exclude_self=True)
    np.testing.assert_array_equal(objectives.soft_ties(hard, levels).numpy(), hist.counts)


@pytest.mark.parametrize("delta", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_counts_and_gradient_equal_the_dense_reference_at_any_width(delta, dtype):
    tolerance = 2e-5 if dtype == torch.float32 else 1e-12
    phi, levels = batch(60, 12, dtype)
    weights = torch.randn(60, 7, 4, dtype=torch.float64)
    results = []
    for module, precision in ((objectives, dtype), (dense, torch.float64)):
        codes = phi.detach().clone().to(precision).requires_grad_()
        counts = module.soft_ties(codes, levels, 6, delta)
        (counts * weights.to(precision)).sum().backward()
        results.append((counts.detach().double(), codes.grad.double()))
    (counts, gradient), (wanted, wanted_gradient) = results
    torch.testing.assert_close(counts, wanted, rtol=tolerance, atol=tolerance)
    assert (gradient - wanted_gradient).norm() < tolerance * wanted_gradient.norm()


@pytest.mark.parametrize("n_bins", [64, 65])
def test_the_gradient_is_right_up_to_256_cells_and_beyond(n_bins):
    phi, levels = batch(60, 8, torch.float32)
    phi[50:] = -phi[:10]
    phi[50:] += 0.99 * (phi[50:].sign() - phi[50:])
    phi[:10] += 0.98 * (phi[:10].sign() - phi[:10])  # pairs in the last bin, none at its edge
    weights = torch.randn(60, n_bins + 1, 4, generator=torch.Generator().manual_seed(1))
    gradients = []
    for module, precision in ((objectives, torch.float32), (dense, torch.float64)):
        codes = phi.detach().clone().to(precision).requires_grad_()
        (module.soft_ties(codes, levels, n_bins) * weights).sum().backward()
        gradients.append(codes.grad.double())
    assert (gradients[0] - gradients[1]).norm() < 1e-4 * gradients[1].norm()


def test_only_levels_that_occur_have_a_column_and_zero_always_has():
    phi, _ = batch(3, 4, torch.float32)
    levels = torch.tensor([[9, 10, 2], [10, 9, 2], [2, 2, 9]])
    counts = objectives.soft_ties(phi, levels)
    assert counts.shape == (3, 5, 4)  # 0, 2, 9 (the diagonal, never counted), 10
    assert counts[:, :, 0].sum() == counts[:, :, 2].sum() == 0
    assert counts[2].sum(0).tolist() == pytest.approx([0, 2, 0, 0])


def test_more_than_255_bins_are_counted_pair_by_pair():
    phi, levels = batch(20, 300, torch.float32)
    counts = objectives.soft_ties(phi, levels)
    wanted = dense.soft_ties(phi.double(), levels)
    torch.testing.assert_close(counts.double(), wanted, rtol=1e-4, atol=1e-4)
