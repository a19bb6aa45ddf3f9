"""Pictures without labels: a backbone's features, before any training, say what is relevant."""

import numpy as np
import pytest
import torch
from torch import nn

from rankbits import affinity, methods
from rankbits.errors import InputError

PICTURES = np.random.default_rng(0).integers(0, 256, (120, 8, 8, 3), dtype=np.uint8)
FEW = {"n_bits": 8, "epochs": 2, "random_state": 0, "n_threads": 1}


class MeanColors(nn.Module):
    """Mean color of each quarter of a picture, times weights that could be trained."""

    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.linspace(0.5, 2.0, 12))

    def forward(self, x):
        quarters = x.reshape(len(x), 2, 4, 2, 4, 3).mean((2, 4))
        return quarters.flatten(1) * self.weights


def features_of(pictures):
    quarters = pictures.reshape(-1, 2, 4, 2, 4, 3).astype(np.float32).mean((2, 4))
    return quarters.reshape(len(pictures), -1) * np.linspace(0.5, 2.0, 12, dtype=np.float32)


@pytest.mark.parametrize("fine_tune", [False, True])
def test_they_are_learned_as_from_the_neighbors_among_the_features(fine_tune):
    params = {**FEW, "encoder": MeanColors(), "fine_tune": fine_tune}
    features = features_of(PICTURES)
    n_nearest = min(10, (len(features) - 1) // 2)
    neighbors = affinity.nearest_ranks(
        features, features, [n_nearest], [1], metric="l2", exclude_self=True
    )
    without = methods.get("talr-ap", **params).fit(PICTURES)
    given = methods.get("talr-ap", **params).fit(PICTURES, neighbors)
    assert without.report_["supervision"]["y"] == "ranks"
    np.testing.assert_allclose(without.project(PICTURES), given.project(PICTURES), rtol=1e-4)


def test_a_head_without_hidden_layers_is_the_default():
    hasher = methods.get("talr-ap", encoder=MeanColors(), **FEW).fit(PICTURES)
    assert hasher.report_["encoder"]["kind"] == "linear"
    assert hasher.report_["config"]["init"] == "itq"
    layers = methods.get("talr-ap", encoder=MeanColors(), hidden=(6,), **FEW).fit(PICTURES)
    assert tuple(layers.report_["encoder"]["hidden"]) == (6,)
    assert layers.report_["config"]["scaling"] == "each"


def test_the_features_of_a_frozen_backbone_are_computed_once():
    sizes = []

    class Counted(MeanColors):
        def forward(self, x):
            sizes.append(len(x))
            return super().forward(x)

    methods.get("talr-ap", encoder=Counted(), **FEW).fit(PICTURES)
    assert sum(size for size in sizes if size > 1) == len(PICTURES)


@pytest.mark.parametrize("encoder", ["auto", "cnn"])
def test_without_a_backbone_the_error_says_what_to_do(encoder):
    with pytest.raises(InputError, match=r"give y, or encoder='backbone', which compares images"):
        methods.get("talr-ap", encoder=encoder, **FEW).fit(PICTURES)


def test_a_method_that_needs_labels_says_so_before_it_computes_features():
    with pytest.raises(InputError, match=r"y must be .* for OrthoHash"):
        methods.get("orthohash", encoder=nn.Linear(1, 1), **FEW).fit(PICTURES)
