"""Mixed precision: where it is used, and that it leaves everything but the products alone."""

import numpy as np
import pytest
import torch

from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods.training import devices

Y = np.arange(60) % 3
X = np.random.default_rng(1).normal(size=(60, 16)) + 3 * np.eye(16)[Y]
QUICK = {"n_bits": 8, "epochs": 3, "n_threads": 1, "random_state": 0, "hidden": (16,)}


@pytest.fixture(params=[False, True], ids=["emulated", "native"])
def is_native(request, monkeypatch):
    monkeypatch.setattr(devices, "multiplies_bfloat16", lambda: request.param)
    return request.param


def test_mixed_precision_is_for_processors_that_multiply_bfloat16(is_native):
    assert devices.use_mixed_precision("mixed") == is_native
    assert not devices.use_mixed_precision("single")


def test_products_are_in_bfloat16_only_within_the_block():
    x = torch.ones(2, 2)
    with devices.mixed_precision(True):
        assert (x @ x).dtype == torch.bfloat16
    with devices.mixed_precision(False):
        assert (x @ x).dtype == torch.float32
    assert (x @ x).dtype == torch.float32


def test_a_training_in_mixed_precision_differs_by_rounding_and_keeps_float32_weights(is_native):
    single = methods.get("talr-ap", **QUICK).fit(X, Y)
    mixed = methods.get("talr-ap", **QUICK, precision="mixed").fit(X, Y)
    assert (single.project(X) != mixed.project(X)).any() == is_native
    assert single.history_[0]["loss"] == pytest.approx(mixed.history_[0]["loss"], abs=0.01)
    weights = mixed.encoder_.state_dict().values()
    assert {w.dtype for w in weights if w.is_floating_point()} == {torch.float32}


def test_an_unknown_precision_is_refused():
    with pytest.raises(InputError, match="precision must be one of"):
        methods.get("talr-ap", precision="half").fit(X, Y)
