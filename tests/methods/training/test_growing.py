"""Classes that grow: bits of geometry beside those of the classes, and queries that weigh both."""

import numpy as np
import pytest
import torch

import rankbits
from rankbits import affinity, evaluate, methods
from rankbits.datasets import digits
from rankbits.errors import InputError
from rankbits.methods.shallow.shared.within_classes import whiten_within_classes
from rankbits.methods.training.geometry import (
    POSTERIOR_WEIGHT,
    QUERY_WEIGHT,
    Geometry,
    join_features,
    measure_confidence,
)
from rankbits.methods.training.growing import learn_metric

QUICK = {"epochs": 3, "n_threads": 1, "random_state": 0}
KNOWN = 6  # digits below it have labels


pytestmark = pytest.mark.usefixtures("short_posterior")


@pytest.fixture(scope="module")
def data():
    return digits()


def fit(data, name="talr-ap", n_bits=32, **params):
    is_known = data.database_y < KNOWN
    hasher = methods.get(name, n_bits=n_bits, **{**QUICK, **params})
    return hasher.fit(data.database_x[is_known], data.database_y[is_known])


@pytest.fixture(scope="module")
def grown(data):
    return fit(data, classes="grow", queries="real")


def score_new_classes(hasher, data):
    is_new, is_new_item = data.query_y >= KNOWN, data.database_y >= KNOWN
    queries = hasher.encode(data.query_x[is_new])
    items = hasher.encode(data.database_x[is_new_item])
    relevance = affinity.classes(data.query_y[is_new], data.database_y[is_new_item])
    return evaluate(queries, items, relevance, "AP").mean["AP"]


def test_whitened_rows_vary_alike_within_their_classes_but_for_the_shrinkage():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 400)
    rows = 5.0 * rng.standard_normal((3, 4))[classes] + rng.standard_normal((400, 4)) * [1, 2, 3, 4]
    within = sum(np.cov(rows[classes == c].T, bias=True) * (classes == c).mean() for c in range(3))
    shrunk = 0.9 * within + 0.1 * np.trace(within) / 4 * np.eye(4)
    whitening = whiten_within_classes(rows, classes)
    np.testing.assert_allclose(whitening @ shrunk @ whitening.T, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(whitening, whitening.T, atol=1e-12)


def test_rows_that_are_equal_within_their_classes_are_not_whitened():
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(whiten_within_classes(rows, np.array([7, 7, 9])), np.eye(2))


def test_cosines_in_the_metric_are_those_of_whitened_rows_scaled_by_their_spread():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 5, 300)
    x = 3.0 * rng.standard_normal((5, 4))[classes] + rng.standard_normal((300, 4)) * [1, 2, 3, 4]
    units = learn_metric(torch.from_numpy(x), classes)(torch.from_numpy(x)).numpy()
    rows = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0).mean())
    rows *= 2 / np.linalg.norm(rows, axis=1, keepdims=True)
    whitened = (rows - rows.mean(axis=0)) @ whiten_within_classes(rows, classes)
    # A^(1/8) in its own directions E is the eighth root of the covariance
    variances, vectors = np.linalg.eigh(np.cov(whitened.T, bias=True))
    spread = whitened @ (vectors * variances**0.125 @ vectors.T)
    spread /= np.linalg.norm(spread, axis=1, keepdims=True)
    np.testing.assert_allclose(units @ units.T, spread @ spread.T, atol=1e-5)


def test_inner_products_of_features_are_cosines_and_a_share_of_posterior_products():
    rng = np.random.default_rng(0)
    units = torch.from_numpy(rng.standard_normal((6, 3)))
    p = torch.from_numpy(rng.dirichlet(np.ones(4), 6))
    features = join_features(units, p)
    expected = units @ units.T + POSTERIOR_WEIGHT * (p @ p.T)
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-12)


def test_confidence_is_the_sum_of_squared_probabilities_and_1_without_a_posterior():
    probabilities = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
    assert measure_confidence(probabilities)[:, 0].tolist() == pytest.approx([0.5, 0.82])
    assert measure_confidence(torch.zeros(2, 0)).tolist() == [[1.0], [1.0]]


def test_items_count_all_bits_alike_and_queries_by_confidence():
    geometry = Geometry(2, 2, 1)
    geometry.metric.directions.copy_(torch.eye(2))
    geometry.planes.copy_(torch.tensor([[1.0], [0.0], [0.0], [2.0]]))
    x = torch.tensor([[3.0, 4.0]])  # of length 1 it is (0.6, 0.8)
    logits, probabilities = torch.tensor([[2.0, -4.0]]), torch.tensor([[0.5, 0.5]])
    z = 0.6 + 2 * POSTERIOR_WEIGHT**0.5 * 0.5
    assert geometry.extend(x, logits, probabilities)[0].tolist() == pytest.approx([2.0, -4.0, z])
    geometry.weigh_queries()
    weighed = [0.5 * np.tanh(2.0), 0.5 * np.tanh(-4.0), QUERY_WEIGHT * z]
    assert geometry.extend(x, logits, probabilities)[0].tolist() == pytest.approx(weighed)


def test_an_eighth_of_the_bits_are_those_of_an_ordinary_fit(data, grown):
    alone = fit(data, n_bits=4, queries="real")
    assert grown.n_bits_ == 32
    assert grown.report_["geometry_bits"] == 28
    np.testing.assert_array_equal(
        grown.project(data.query_x)[:, :4] > 0, alone.project(data.query_x) > 0
    )


def test_the_other_bits_do_not_depend_on_the_loss(data, grown):
    other = fit(data, "hashnet", classes="grow")
    np.testing.assert_allclose(
        grown.project(data.query_x)[:, 4:], other.project(data.query_x)[:, 4:], atol=1e-4
    )


def test_real_valued_queries_are_weighed_by_the_posterior_of_their_classes(data, grown):
    encoder = grown.query_encoder_
    parts = dict(encoder.head.named_children())
    with torch.no_grad():
        x = torch.from_numpy(data.query_x).float()
        beliefs = parts["posterior"](parts["standardize"](x))
        logits = parts["body"](parts["rescale"](beliefs))
        sure = (beliefs[:, KNOWN:] ** 2).sum(1, keepdim=True)
        geometry = QUERY_WEIGHT * encoder.geometry(x, beliefs[:, KNOWN:])
        expected = torch.tanh(torch.cat([sure * torch.tanh(logits), geometry], dim=1))
    np.testing.assert_allclose(grown.project_queries(data.query_x), expected, atol=1e-5)
    is_known = data.query_y < KNOWN
    assert sure[is_known].mean() > sure[~is_known].mean()


def test_an_encoder_without_a_posterior_has_the_geometry_of_the_rows_alone(data):
    hasher = fit(data, classes="grow", queries="real", encoder="linear")
    assert hasher.encoder_.geometry.planes.shape == (data.query_x.shape[1], 28)
    assert hasher.project_queries(data.query_x).shape == (len(data.query_x), 32)


def test_new_classes_are_ranked_better_than_by_bits_of_the_known_classes_alone(data):
    fixed, grown = (fit(data, classes=classes) for classes in ("fixed", "grow"))
    assert score_new_classes(grown, data) > score_new_classes(fixed, data) + 0.05


def test_queries_that_are_encoded_as_items_stay_so(data):
    hasher = fit(data, classes="grow")
    assert hasher.encode_queries(data.query_x) == hasher.encode(data.query_x)


def test_a_saved_model_comes_back_whole(data, grown, tmp_path):
    grown.save(tmp_path / "model")
    loaded = rankbits.load(tmp_path / "model")
    for method in ("project", "project_queries"):
        np.testing.assert_array_equal(
            getattr(loaded, method)(data.query_x), getattr(grown, method)(data.query_x)
        )


@pytest.mark.parametrize("encoder", ["mlp", "linear"])
def test_an_exported_model_takes_any_number_of_rows_and_ranks_as_ours(data, tmp_path, encoder):
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    hasher = fit(data, n_bits=8, classes="grow", queries="real", encoder=encoder)
    methods.export_onnx(hasher, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    for rows in (data.query_x[:5].astype(np.float32), data.query_x.astype(np.float32)):
        codes, weights = session.run(["codes", "query_logits"], {"x": rows})
        np.testing.assert_array_equal(codes, hasher.transform(rows))
        np.testing.assert_allclose(weights, hasher.project_queries(rows), atol=1e-4)


def test_one_bit_is_a_class_bit(data):
    hasher = fit(data, n_bits=1, classes="grow")
    assert hasher.n_bits_ == 1
    assert hasher.report_["geometry_bits"] == 0


def test_bits_beyond_the_directions_of_the_rows_are_class_bits():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((60, 4)), np.arange(60) % 3
    hasher = methods.get("talr-ap", n_bits=24, classes="grow", **QUICK).fit(x, y)
    assert hasher.n_bits_ == 24
    assert hasher.report_["geometry_bits"] == 4


@pytest.mark.parametrize("y", [None, np.eye(20, 2, dtype=int)])
def test_classes_can_grow_only_if_y_is_class_labels(y):
    x = np.random.default_rng(0).standard_normal((20, 5))
    with pytest.raises(InputError, match="classes='grow' needs class labels as y"):
        methods.get("talr-ap", classes="grow", **QUICK).fit(x, y)


def test_images_have_no_geometry_to_keep():
    images = np.zeros((8, 8, 8, 3), np.uint8)
    with pytest.raises(InputError, match="classes must be 'fixed' for images"):
        methods.get("talr-ap", classes="grow", **QUICK).fit(images, np.arange(8) % 2)
