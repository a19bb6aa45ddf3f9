"""Encoders from the files of somebody else: what is written down must agree before it is built."""

import hashlib
import json

import numpy as np
import pytest
import safetensors.numpy

import rankbits
from rankbits import methods
from rankbits._json import seal
from rankbits.errors import FileFormatError, InputError
from rankbits.methods import persistence

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 40)
ROWS = RNG.standard_normal((40, 6)) + 2 * LABELS[:, None]
IMAGES = RNG.integers(0, 256, (40, 16, 16, 3)).astype(np.uint8)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """An encoder of vectors and one of images, and the records of both."""
    folder = tmp_path_factory.mktemp("saved")
    mlp = methods.get("csq", n_bits=5, encoder="mlp", hidden=(4,), epochs=1, random_state=0)
    mlp.fit(ROWS, LABELS).save(folder / "mlp")
    cnn = methods.get("csq", n_bits=5, encoder="cnn", hidden=(4, 3), epochs=1, random_state=0)
    cnn.fit(IMAGES, LABELS).save(folder / "cnn")
    return folder


@pytest.fixture
def forge(saved, tmp_path):
    """Write a saved model with changes, signed again."""

    def forge(name="mlp", encoder=(), params=(), facts=(), arrays=(), n_features=None):
        record = json.loads((saved / name / "model.json").read_text())
        tensors = safetensors.numpy.load_file(saved / name / "model.safetensors")
        record["facts"]["encoder"] |= dict(encoder)
        record["facts"] |= dict(facts)
        record["params"] |= dict(params)
        record["n_features_in"] = n_features or record["n_features_in"]
        content = safetensors.numpy.save(tensors | dict(arrays))
        record["arrays_sha256"] = hashlib.sha256(content).hexdigest()
        fields = {name: record[name] for name in persistence._FIELDS}
        folder = tmp_path / "forged"
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(content)
        sealed = seal(persistence.FORMAT, persistence.VERSION, fields)
        (folder / "model.json").write_bytes(sealed)
        return folder

    return forge


def test_what_is_forged_without_changes_is_loaded(forge):
    assert rankbits.load(forge()).encode(ROWS).n_bits == 5


SIZES = {
    "bits of no code": ({"n_bits": 4097}, "n_bits must be"),
    "bits of no kind": ({"n_bits": "5"}, "n_bits must be"),
    "more bits of geometry than bits": ({"geometry_bits": 5}, "geometry_bits must be"),
    "many layers": ({"hidden": [1] * 20_000}, "hidden layers must be"),
    "more layers than arrays": ({"hidden": [1] * 200}, "arrays are too few"),
    "a layer beyond all numbers": ({"hidden": [10**400]}, "forged cannot be loaded"),
    "an empty layer": ({"hidden": [0]}, "hidden must be"),
    "more networks than arrays": (
        {"posterior": 64, "n_classes": 3, "posterior_width": 8},
        "arrays are too few",
    ),
    "networks without classes": ({"posterior": 1, "n_classes": 0}, "n_classes must be"),
    "classifiers of no width": ({"posterior": 1, "n_classes": 3}, "posterior_width must be"),
    "a skip of no kind": ({"skip": "yes"}, "skip must be"),
    "anchors of no kind": ({"n_anchors": -1}, "n_anchors must be"),
    "a backbone of no name": ({"backbone": "../other"}, "rows are of shape"),
    "an image size beyond all": ({"image_size": 10**9}, "image_size must be"),
    "a shape of no kind": ({"input_shape": ["6"]}, "rows are of shape|input_shape must be"),
    "another kind": ({"kind": "cnn"}, "must have shape"),
}


@pytest.mark.parametrize("case", SIZES)
def test_an_architecture_that_cannot_be_is_refused(forge, case):
    encoder, reason = SIZES[case]
    with pytest.raises(FileFormatError, match=reason) as caught:
        rankbits.load(forge(encoder=encoder))
    assert "\n" not in str(caught.value)


def test_tuned_networks_are_not_built_without_their_weights(forge):
    pytest.importorskip("efficientnet_lite_pytorch")
    tuned = {"backbone": "efficientnet-lite0", "image_size": 32, "fine_tune": "all"}
    folder = forge(
        encoder={**tuned, "posterior": 64, "n_classes": 3},
        facts={"input_shape": [16, 16, 3]},
        arrays={f"backbone.networks.{k}": np.zeros(1, np.float32) for k in range(20_000)},
        n_features=16,
    )
    with pytest.raises(FileFormatError, match=r"networks\.0\..* is not there"):
        rankbits.load(folder)


@pytest.mark.parametrize("name", ["checkpoint", "log", "scoring", "posterior_cache"])
def test_a_model_cannot_say_where_a_later_fit_writes(forge, name):
    with pytest.raises(FileFormatError, match=f"a saved csq has no parameter '{name}'"):
        rankbits.load(forge(params={name: "/somewhere/else"}))


@pytest.mark.parametrize(
    ("name", "value"), [("n_threads", 10**9), ("n_threads", "2"), ("epochs", 0)]
)
def test_parameters_are_checked_when_they_are_loaded(forge, name, value):
    with pytest.raises(FileFormatError, match=f"{name} must be"):
        rankbits.load(forge(params={name: value}))


@pytest.mark.parametrize(
    "facts", [{"report": []}, {"history": {}}, {"more": 1}, {"has_query_encoder": 1}]
)
def test_facts_of_another_type_are_refused(forge, facts):
    with pytest.raises(FileFormatError, match="its facts must be encoder, input_shape"):
        rankbits.load(forge(facts=facts))


@pytest.mark.parametrize("shape", [[7], [], [16, 16, 3], [10**9], [True]])
def test_rows_that_the_encoder_does_not_read_are_refused(forge, shape):
    with pytest.raises(FileFormatError, match=r"rows are of shape|input_shape must be"):
        rankbits.load(forge(facts={"input_shape": shape}))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_weights_that_are_no_numbers_are_refused(forge, saved, name, value):
    tensors = safetensors.numpy.load_file(saved / name / "model.safetensors")
    weight = next(key for key in tensors if key.endswith("weight"))
    tensors[weight].reshape(-1)[0] = value
    with pytest.raises(FileFormatError, match="must be finite numbers"):
        rankbits.load(forge(name, arrays=tensors))


def test_weights_of_another_type_are_refused(forge, saved):
    tensors = safetensors.numpy.load_file(saved / "mlp" / "model.safetensors")
    weight = next(key for key in tensors if key.endswith("weight"))
    with pytest.raises(FileFormatError, match="arrays are not those of the encoder"):
        rankbits.load(forge(arrays={weight: tensors[weight].astype(np.float64)}))


def test_weights_that_make_no_numbers_of_rows_are_told_when_rows_are_encoded(forge, saved):
    tensors = safetensors.numpy.load_file(saved / "mlp" / "model.safetensors")
    large = {
        key: np.full_like(value, 3e38) for key, value in tensors.items() if key.endswith("weight")
    }
    hasher = rankbits.load(forge(arrays=large))
    with pytest.raises(InputError, match="X must have logits that are finite numbers"):
        hasher.encode(ROWS)
