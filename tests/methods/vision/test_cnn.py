"""The plain convolutional network."""

import numpy as np
import torch

from rankbits.methods.training import encoders
from rankbits.methods.training.kinds import Architecture


def test_the_cnn_sees_bytes_and_floats_alike_and_every_stage_halves(rng):
    images = torch.from_numpy(rng.integers(0, 256, (6, 32, 32, 3), np.uint8))
    encoder = encoders.build_encoder(Architecture("cnn", (32, 32, 3), 12))
    encoders.learn_scales(encoder, images, np.random.default_rng(0))
    encoder.eval()
    assert torch.equal(encoder(images), encoder(images.float()))
    assert encoder(images).shape == (6, 12)
    assert encoder.head.body.stages(torch.zeros(1, 3, 32, 32)).shape == (1, 128, 4, 4)
