"""The most violating codes are those of all pairs of codes, and the bound is one."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from oracles import mlh as oracle
from rankbits.methods.shallow.mlh.bound import bound_and_slopes, hinge_table, most_violating

KINDS = np.array([True, False] * 20)


@pytest.fixture(params=[(1, 1.0), (2, 0.5), (4, 2.0)])
def problem(request, rng):
    """Logits of 40 pairs of 4 bits, of every size beside the losses, and their losses."""
    radius, slope = request.param
    sizes = np.geomspace(0.05, 5, 40)[:, None]
    u, v = sizes * rng.standard_normal((40, 4)), sizes * rng.standard_normal((40, 4))
    return u, v, hinge_table(4, radius, slope)[KINDS.astype(int)], radius, slope


def test_the_table_has_the_loss_of_every_distance():
    for n_bits, radius, slope in ((5, 2, 0.7), (3, 3, 1.0)):
        zeros = [0] * n_bits
        for distance in range(n_bits + 1):
            code = [1] * distance + [0] * (n_bits - distance)
            expected = [oracle.loss(zeros, code, kind, radius, slope) for kind in (False, True)]
            assert hinge_table(n_bits, radius, slope)[:, distance] == pytest.approx(expected)


def test_loss_augmented_inference_is_exact(problem):
    u, v, losses, radius, slope = problem
    g, h, values = most_violating(u, v, losses)
    for i, is_similar in enumerate(KINDS):
        best = oracle.largest_value(u[i], v[i], is_similar, radius, slope)
        assert values[i] == pytest.approx(best)
        reached = oracle.loss(g[i], h[i], is_similar, radius, slope) + g[i] @ u[i] + h[i] @ v[i]
        assert reached == pytest.approx(best)


def test_the_bound_is_never_below_the_loss_of_the_codes(problem):
    u, v, losses, radius, slope = problem
    bounds, _, _ = bound_and_slopes(u, v, losses)
    actual = [
        oracle.loss(u[i] > 0, v[i] > 0, is_similar, radius, slope)
        for i, is_similar in enumerate(KINDS)
    ]
    assert (bounds >= np.array(actual) - 1e-12).all()
    assert bounds[-1] == pytest.approx(actual[-1])  # large logits leave no room


def test_slopes_are_those_of_finite_differences(problem):
    u, v, losses, *_ = problem
    _, along_u, along_v = bound_and_slopes(u, v, losses)
    for i in range(40):
        both = np.concatenate([u[i], v[i]])
        numeric = approx_fprime(
            both, lambda z, i=i: bound_and_slopes(z[None, :4], z[None, 4:], losses[i : i + 1])[0][0]
        )
        np.testing.assert_allclose(np.concatenate([along_u[i], along_v[i]]), numeric, atol=1e-5)
