"""Encoders: what they compute, what they learn before any gradient, and how they are rebuilt."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from rankbits.errors import InputError
from rankbits.methods.training import encoders
from rankbits.methods.training.kinds import Architecture
from rankbits.methods.training.layers import BatchNorm1d, Dropout, Standardize
from rankbits.methods.training.optimizers import WeightAverage, measure_statistics

VECTORS = [
    Architecture("linear", (5,), 3),
    Architecture("linear", (5,), 3, n_anchors=7, input_dropout=0.5),
    Architecture("mlp", (5,), 3, hidden=(8, 4), dropout=0.5),
    Architecture("mlp", (5,), 3, hidden=(8,), normalization="layer", activation="gelu", skip=True),
    Architecture("mlp", (5,), 3, hidden=(6,), normalization="none", activation="tanh", n_anchors=4),
]


@pytest.fixture
def rows(rng):
    return torch.from_numpy(rng.normal(size=(60, 5)) * [1, 5, 0.1, 3, 1] + 4).float()


def build(architecture, rows):
    torch.manual_seed(0)
    encoder = encoders.build_encoder(architecture)
    encoders.learn_scales(encoder, rows, np.random.default_rng(0))
    return encoder.eval()


def test_linear_is_a_matrix_on_standardised_features(rows):
    encoder = build(Architecture("linear", (5,), 3), rows)
    x = rows.double().numpy()
    weight, bias = (p.detach().numpy() for p in encoder.head.body.layers[0].parameters())
    expected = (x - x.mean(0)) / x.std(0) @ weight.T + bias
    np.testing.assert_allclose(encoder(rows).detach(), expected, atol=1e-5)


def test_constant_features_get_scale_1_and_are_named(rows):
    rows[:, 1] = 0.1
    rows[:, 3] = 12345.678
    layer = Standardize(5)
    assert layer.learn(rows).tolist() == [1, 3]
    assert layer.scale[[1, 3]].tolist() == [1.0, 1.0]
    assert (layer(rows)[:, [1, 3]] == 0).all()
    np.testing.assert_allclose(layer(rows)[:, [0, 2, 4]].std(0, correction=0), 1, atol=1e-5)


def test_images_are_standardised_by_channel(rng):
    images = torch.from_numpy(rng.integers(0, 256, (9, 8, 8, 3), np.uint8))
    layer = Standardize(3)
    layer.learn(images)
    np.testing.assert_allclose(layer.mean, images.double().mean((0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(layer.scale, images.double().std((0, 1, 2), correction=0), rtol=1e-6)


def test_kernel_features_are_gaussians_around_training_rows(rows):
    encoder = build(Architecture("linear", (5,), 3, n_anchors=7), rows)
    head = dict(encoder.head.named_children())
    scaled = head["standardize"](rows).numpy()
    anchors, width = head["anchors"].anchors.numpy(), float(head["anchors"].width)
    assert all((np.abs(scaled - anchor).max(1) < 1e-6).any() for anchor in anchors)
    assert len(np.unique(anchors, axis=0)) == 7
    distances = np.sqrt(((scaled[:, None] - anchors) ** 2).sum(-1))
    assert 2 * width**2 == pytest.approx(np.median(distances[distances > 1e-6] ** 2), rel=1e-4)
    features = head["anchors"](head["standardize"](rows)).numpy()
    np.testing.assert_allclose(features, np.exp(-(distances**2) / (2 * width**2)), atol=1e-5)
    rescaled = head["rescale"](torch.from_numpy(features))
    np.testing.assert_allclose(rescaled.std(0, correction=0), 1, atol=1e-4)


def test_hidden_layers_are_what_the_architecture_says(rows):
    d = Architecture(
        "mlp", (5,), 3, hidden=(8,), normalization="none", activation="relu", skip=True
    )
    encoder = build(d, rows)
    body = encoder.head.body
    x = encoder.head.standardize(rows)
    first, last = body.layers[0], body.layers[-1]
    hidden = torch.clamp(x @ first.weight.T + first.bias, min=0)
    expected = hidden @ last.weight.T + last.bias + x @ body.skip.weight.T
    torch.testing.assert_close(encoder(rows), expected)


@pytest.mark.parametrize("architecture", VECTORS)
def test_in_evaluation_a_row_does_not_depend_on_its_neighbours(architecture, rows):
    encoder = build(architecture, rows)
    whole = encoder(rows)
    alone = torch.cat([encoder(row[None]) for row in rows])
    torch.testing.assert_close(whole, alone)
    assert whole.shape == (60, 3)


@pytest.mark.parametrize(
    "architecture", [*VECTORS, Architecture("cnn", (16, 8, 2), 5, hidden=(4, 6, 4), dropout=0.3)]
)
def test_architecture_and_weights_rebuild_an_encoder_through_json(architecture, rows, rng):
    if architecture.kind == "cnn":
        rows = torch.from_numpy(rng.integers(0, 256, (20, 16, 8, 2), np.uint8))
    encoder = build(architecture, rows)
    told = json.loads(json.dumps(architecture.to_json()))
    assert Architecture.from_json(told) == architecture
    torch.manual_seed(99)
    again = encoders.build_encoder(Architecture.from_json(told)).eval()
    again.load_state_dict(encoder.state_dict())
    assert torch.equal(again(rows), encoder(rows))


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_dropout_zeroes_its_share_keeps_the_mean_and_rests_in_evaluation(share):
    torch.manual_seed(1)
    layer, x = Dropout(share), torch.full((401, 203), 3.0)
    y = layer(x)
    assert float((y == 0).double().mean()) == pytest.approx(round(share * 256) / 256, abs=0.01)
    assert float(y.mean()) == pytest.approx(3.0, rel=0.05)
    assert len(y.unique()) == 2
    columns = (y == 0).double()
    assert float(torch.corrcoef(columns.T).fill_diagonal_(0).abs().max()) < 0.3
    assert layer.eval()(x) is x


def test_batch_norm_of_one_training_row_uses_what_it_knows():
    layer = BatchNorm1d(3)
    layer(torch.randn(50, 3) * 2 + 1)
    x = torch.tensor([[1.0, 2.0, 3.0]])
    expected = (x - layer.running_mean) / (layer.running_var + layer.eps).sqrt()
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": "mpl"}, "encoder must be one of .*did you mean 'mlp'"),
        ({"activation": "relu6"}, "activation must be one of"),
        ({"normalization": "group"}, "normalization must be one of"),
        ({"dropout": 1.0}, "dropout must be a number from 0 and below 1, got 1.0"),
        ({"input_dropout": -0.1}, "input_dropout must be a number from 0"),
        ({"hidden": (8, 0)}, "hidden must be an integer >= 1, got 0"),
        ({"input_shape": (4, 4, 3)}, "images go to encoder='cnn'"),
        ({"kind": "cnn", "input_shape": (4, 32, 3)}, "at least 8 pixels a side"),
        ({"kind": "cnn"}, r"X must have shape \(n, height, width, channels\)"),
        ({"kind": "cnn", "input_shape": (8, 8, 3), "n_anchors": 3}, "kernel must be None"),
    ],
)
def test_an_encoder_that_cannot_be_built_is_refused(changes, says):
    facts = {**Architecture("mlp", (5,), 3, hidden=(8, 8, 8)).to_json(), **changes}
    with pytest.raises(InputError, match=says):
        encoders.build_encoder(Architecture.from_json(facts))


@pytest.mark.parametrize("change", [{"colour": 1}, {"hidden": 3}, {"kind": None, "n_bits": None}])
def test_an_architecture_of_another_version_is_refused(change):
    facts = {**VECTORS[0].to_json(), **change}
    with pytest.raises(InputError, match=r"encoder"):
        encoders.build_encoder(Architecture.from_json(facts))
    with pytest.raises(
        InputError, match="architecture of the encoder is not one that this version knows"
    ):
        Architecture.from_json({"kind": "linear"})


def test_the_average_of_weights_follows_its_recurrence():
    module = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        module.weight.fill_(1.0)
    average, expected = WeightAverage(module, 0.5), 1.0
    for step, weight in enumerate([2.0, -1.0, 4.0, 8.0, 0.5, 3.0, 3.0, 3.0, 9.0, -7.0, 1.0]):
        with torch.no_grad():
            module.weight.fill_(weight)
        average.update(module)
        rate = min(0.5, (1 + step) / (10 + step))
        expected = rate * expected + (1 - rate) * weight
    with average.applied(module, torch.zeros(2, 1), 2):
        assert module.weight.item() == pytest.approx(expected, rel=1e-6)
    assert module.weight.item() == 1.0


def test_statistics_measured_again_are_those_of_the_rows(rows):
    module = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), Dropout(0.5))
    for _ in range(3):
        module(torch.randn(10, 5) * 100)
    measure_statistics(module, rows, block=60)
    hidden = module[0](rows)
    torch.testing.assert_close(module[1].running_mean, hidden.mean(0))
    torch.testing.assert_close(module[1].running_var, hidden.var(0))
    assert module.training
    assert module[1].momentum == 0.1
