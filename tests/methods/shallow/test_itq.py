"""Iterative quantization: the loss falls turn by turn, the rotation stays one."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from rankbits import methods
from rankbits.errors import InputError


@pytest.fixture(scope="module")
def rows():
    return load_digits().data[:600]


def loss_by_definition(itq, rows):
    """|B - V R|^2 / n, written out."""
    turned = (rows - rows.mean(axis=0)) @ itq.components_ @ itq.rotation_
    codes = np.where(turned > 0, 1.0, -1.0)
    return np.square(codes - turned).sum() / len(rows)


@pytest.mark.parametrize("n_bits", [1, 7, 32])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_quantization_loss_never_rises_and_falls_at_first(rows, n_bits, seed):
    itq = methods.get("itq", n_bits=n_bits, random_state=seed).fit(rows)
    losses = itq.quantization_losses_
    assert (np.diff(losses) <= 1e-9 * losses[0]).all()
    assert n_bits == 1 or losses[-1] < 0.999 * losses[0]
    assert losses[-1] == pytest.approx(loss_by_definition(itq, rows))


@pytest.mark.parametrize("n_bits", [1, 7, 32])
def test_the_rotation_is_orthogonal_and_the_planes_are_turned_directions(rows, n_bits):
    itq = methods.get("itq", n_bits=n_bits, random_state=0).fit(rows)
    np.testing.assert_allclose(itq.rotation_.T @ itq.rotation_, np.eye(n_bits), atol=1e-10)
    np.testing.assert_allclose(itq.planes_.T @ itq.planes_, np.eye(n_bits), atol=1e-10)
    np.testing.assert_allclose(itq.planes_, itq.components_ @ itq.rotation_, atol=1e-12)


def test_without_turns_it_is_pca_under_a_random_rotation(rows):
    itq = methods.get("itq", n_bits=8, n_iter=0, random_state=0).fit(rows)
    pcah = methods.get("pcah", n_bits=8, random_state=0).fit(rows)
    turned = pcah.project(rows) @ itq.rotation_
    flips = np.sign(np.einsum("nk,nk->k", turned, itq.project(rows)))
    assert len(itq.quantization_losses_) == 1
    np.testing.assert_allclose(np.linalg.norm(turned), np.linalg.norm(itq.project(rows)), rtol=1e-5)
    assert flips.shape == (8,)


def test_turns_end_once_no_bit_changes(rows):
    itq = methods.get("itq", n_bits=3, n_iter=500, random_state=0).fit(rows)
    assert 1 < len(itq.quantization_losses_) < 400
    last = itq.quantization_losses_[-2:]
    assert last[0] == pytest.approx(last[1], rel=1e-6)


@pytest.mark.parametrize("n_iter", [-1, 1.5, None])
def test_turns_must_be_a_whole_number(rows, n_iter):
    with pytest.raises(InputError, match="n_iter must be an integer >= 0"):
        methods.get("itq", n_bits=2, n_iter=n_iter).fit(rows)
