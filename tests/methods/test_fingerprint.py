"""A fingerprint tells models apart, and is the same wherever a model is."""

import numpy as np
import pytest

import rankbits
from rankbits import methods
from rankbits.methods import fingerprint, fingerprints

X = np.random.default_rng(0).standard_normal((60, 6)).astype(np.float32)
Y = np.arange(60) % 3
FEW = {"n_bits": 6, "epochs": 1, "n_restarts": 1}


def fitted(name, seed=0, x=X, **params):
    known = methods.get(name).get_params()
    chosen = FEW | {"random_state": seed} | params
    chosen = {key: value for key, value in chosen.items() if key in known}
    return methods.get(name, **chosen).fit(x, Y[: len(x)])


@pytest.mark.parametrize("name", ["lsh", "itq", "pcah", "sign", "rsh", "lwh", "talr-ap"])
def test_memory_folder_and_codes_agree(name, tmp_path):
    hasher = fitted(name)
    hasher.save(tmp_path / "model")
    back = rankbits.load(tmp_path / "model")
    assert (
        fingerprint(hasher) == fingerprint(back) == hasher.encode(X).model == back.encode(X).model
    )
    assert len(fingerprint(hasher)) == 32


def test_the_onnx_file_names_the_model(tmp_path):
    onnx = pytest.importorskip("onnx")
    hasher = fitted("itq")
    methods.export_onnx(hasher, tmp_path / "model.onnx")
    stored = {item.key: item.value for item in onnx.load(tmp_path / "model.onnx").metadata_props}
    assert stored["rankbits.model"] == fingerprint(hasher)
    assert stored["rankbits.n_bits"] == "6"


def test_other_models_have_other_fingerprints_and_the_same_fit_has_the_same():
    seen = [fingerprint(fitted("lsh", seed)) for seed in range(4)]
    seen += [
        fingerprint(fitted("itq")),
        fingerprint(fitted("pcah")),
        fingerprint(fitted("itq", x=X[:40])),
    ]
    assert len(set(seen)) == len(seen)
    assert fingerprint(fitted("itq")) == fingerprint(fitted("itq"))


def test_how_a_model_was_trained_and_is_run_does_not_matter():
    hasher = fitted("talr-ap")
    before = fingerprint(hasher)
    hasher.set_params(n_threads=1)
    hasher.report_ = {**hasher.report_, "seconds": -1.0}
    assert fingerprint(hasher) == before


def test_another_fit_of_the_same_object_is_another_model():
    hasher = fitted("itq")
    before = fingerprint(hasher)
    hasher.fit(X[:40])
    assert fingerprint(hasher) != before
    assert hasher.encode(X).model == fingerprint(hasher)


def test_a_fingerprint_is_computed_once_for_each_fit(monkeypatch):
    hasher = fitted("itq")
    calls = []
    real = fingerprints._compute
    monkeypatch.setattr(fingerprints, "_compute", lambda it: calls.append(it) or real(it))
    models = {hasher.encode(X[:1]).model for _ in range(5)}
    assert (len(calls), models) == (1, {fingerprint(hasher)})


def test_what_cannot_be_saved_has_no_fingerprint():
    torch = pytest.importorskip("torch")

    class Own(type(fitted("itq"))):
        """A class that the registry does not know."""

    assert fingerprint(Own(n_bits=6).fit(X)) is None
    module = torch.nn.Linear(6, 8)
    assert fitted("talr-ap", encoder="backbone", backbone=module).encode(X).model is None


def test_codes_of_two_models_do_not_meet_in_an_index():
    index = rankbits.index.HammingIndex(6)
    index.add(fitted("lsh", 0).encode(X))
    with pytest.raises(ValueError, match="encode both with the same model"):
        index.search(fitted("lsh", 1).encode(X[:2]), 3)
