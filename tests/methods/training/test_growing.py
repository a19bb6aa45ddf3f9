"""Classes that grow: bits of geometry beside those of the classes, and queries that weigh both."""

import numpy as np
import pytest
import torch

import rankbits
from rankbits import affinity, evaluate, methods
from rankbits.datasets import digits
from rankbits.errors import InputError
from rankbits.methods.training.geometry import QUERY_WEIGHT, Geometry, measure_confidence
from rankbits.methods.training.growing import whiten_within_classes

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


def test_confidence_is_the_sum_of_squared_probabilities():
    beliefs = torch.tensor([[0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.9, 0.1]])
    assert measure_confidence(beliefs)[:, 0].tolist() == pytest.approx([0.5, 0.82])


def test_items_count_all_bits_alike_and_queries_by_confidence():
    geometry = Geometry(2, 1)
    geometry.planes.copy_(torch.tensor([[1.0], [0.0]]))
    x = torch.tensor([[3.0, 4.0]])  # of norm sqrt(2) it is (0.849, 1.131)
    logits, confidence = torch.tensor([[2.0, -4.0]]), torch.tensor([[0.25]])
    z = 0.6 * 2**0.5
    assert geometry.extend(x, logits, confidence)[0].tolist() == pytest.approx([2.0, -4.0, z])
    geometry.weigh_queries()
    weighed = [0.25 * np.tanh(2.0), 0.25 * np.tanh(-4.0), QUERY_WEIGHT * z]
    assert geometry.extend(x, logits, confidence)[0].tolist() == pytest.approx(weighed)


def test_a_quarter_of_the_bits_are_those_of_an_ordinary_fit(data, grown):
    alone = fit(data, n_bits=8, queries="real")
    assert grown.n_bits_ == 32
    assert grown.report_["geometry_bits"] == 24
    np.testing.assert_array_equal(
        grown.project(data.query_x)[:, :8] > 0, alone.project(data.query_x) > 0
    )


def test_the_other_bits_do_not_depend_on_the_loss(data, grown):
    other = fit(data, "hashnet", classes="grow")
    np.testing.assert_allclose(
        grown.project(data.query_x)[:, 8:], other.project(data.query_x)[:, 8:], atol=1e-5
    )


def test_real_valued_queries_are_weighed_by_the_posterior_of_their_classes(data, grown):
    encoder = grown.query_encoder_
    parts = dict(encoder.head.named_children())
    with torch.no_grad():
        x = torch.from_numpy(data.query_x).float()
        beliefs = parts["posterior"](parts["standardize"](x))
        logits = parts["body"](parts["rescale"](beliefs))
        sure = (beliefs[:, KNOWN:] ** 2).sum(1, keepdim=True)
        geometry = QUERY_WEIGHT * encoder.geometry(x)
        expected = torch.tanh(torch.cat([sure * torch.tanh(logits), geometry], dim=1))
    np.testing.assert_allclose(grown.project_queries(data.query_x), expected, atol=1e-5)
    is_known = data.query_y < KNOWN
    assert sure[is_known].mean() > sure[~is_known].mean()


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
