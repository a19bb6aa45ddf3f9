"""Engines that ask the frozen part of a backbone: the same maps, and torch where it must be."""

import importlib

import numpy as np
import pytest
import torch
from torch import nn

from rankbits.methods.vision import frozen
from rankbits.methods.vision.backbones import load_backbone, split_backbone

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def first():
    pytest.importorskip("efficientnet_lite_pytorch")
    return split_backbone(load_backbone("efficientnet-lite0", 64).eval(), 11)[0]


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.integers(0, 256, (5, 32, 32, 3)).astype(np.uint8))


@pytest.mark.parametrize("n_rows", [1, 5])
def test_openvino_gives_the_maps_of_torch(first, images, n_rows):
    pytest.importorskip("openvino")
    assert frozen.name_engine(first, CPU).startswith("openvino ")
    ask = frozen.prepare_network(first, images[:1], CPU, is_mixed=False)
    with torch.no_grad():
        expected = first(images[:n_rows])
    found = ask(images[:n_rows])
    assert found.dtype == np.float16
    assert found.shape == expected.shape
    assert np.abs(found - expected.numpy()).max() < 2e-3 * expected.abs().max()


def test_maps_in_bfloat16_are_near_those_in_single_precision(first, images):
    pytest.importorskip("openvino")
    exact, fast = (
        frozen.prepare_network(first, images[:1], CPU, is_mixed=is_mixed)(images).astype(float)
        for is_mixed in (False, True)
    )
    assert np.corrcoef(exact.ravel(), fast.ravel())[0, 1] > 0.999


def test_torch_asks_where_openvino_is_missing_or_the_module_is_the_users_own(
    first, images, monkeypatch
):
    assert frozen.name_engine(nn.Flatten(), CPU) == "torch"
    assert frozen.name_engine(first, torch.device("cuda")) == "torch"
    load = importlib.import_module

    def without_openvino(name, *rest):
        if name == "openvino":
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without_openvino)
    assert frozen.name_engine(first, CPU) == "torch"
    with torch.no_grad():
        expected = first(images).half().numpy()
    found = frozen.prepare_network(first, images[:1], CPU, is_mixed=False)(images)
    assert np.array_equal(found, expected)
